#include "launch/process/ended_look.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "launch/process/hang_report.h"

namespace starling::launch {

namespace {

constexpr std::chrono::milliseconds kFirst{1000};
constexpr int kQuietSeconds = 1;

using SharedLook = std::shared_ptr<const EndedLook>;

void schedule_check(EventLoop& loop, Launcher& launcher, const SharedLook& look, std::chrono::milliseconds wait) {
    loop.after(wait, [&loop, &launcher, look, wait] {
        const auto again = [&loop, &launcher, look, wait] {
            schedule_check(loop, launcher, look, std::min(2 * wait, look->longest));
        };
        const NextCheck state = look->state();
        if (state == NextCheck::never) return;
        if (state == NextCheck::later) return again();
        char name[20];
        std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(look->job));
        explain(loop, launcher, name, {.quiet = kQuietSeconds, .ended_awaited = true},
                look->hosts ? look->hosts() : std::vector<std::string>(), [look, again](const std::string& text) {
                    if (look->state() == NextCheck::never) return;
                    text.empty() ? again() : look->found();
                });
    });
}

}  // namespace

void start_wait_checks(EventLoop& loop, Launcher& launcher, EndedLook look) {
    schedule_check(loop, launcher, std::make_shared<const EndedLook>(std::move(look)), kFirst);
}

}  // namespace starling::launch
