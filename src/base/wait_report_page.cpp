#include "base/wait_report_page.h"

#include <sched.h>

#include <cstring>

namespace starling {

namespace {

using PageWord [[gnu::may_alias]] = uint64_t;
constexpr size_t kWords = sizeof(WaitReportPage) / sizeof(PageWord);
/// Retries of a reader before it assumes that the writer is dead. A write takes a microsecond, and a writer that lost its core in the
/// middle gets it back after a few turns.
constexpr int kMostTurns = 4000;

// Copies everything after the first word, which holds version and layout and is written separately.
void copy_behind_version(WaitReportPage& to, const WaitReportPage& from) {
    auto* out = reinterpret_cast<PageWord*>(&to);
    const auto* in = reinterpret_cast<const PageWord*>(&from);
    for (size_t i = 1; i < kWords; ++i) __atomic_store_n(&out[i], __atomic_load_n(&in[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

}  // namespace

void write_account(WaitReportPage& page, const WaitReportPage& from) {
    // The version is odd already if the last writer in this slot was killed while writing.
    const uint32_t version = __atomic_load_n(&page.version, __ATOMIC_RELAXED) | 1;
    __atomic_store_n(&page.version, version, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&page.layout, WaitReportPage::kLayout, __ATOMIC_RELAXED);
    copy_behind_version(page, from);
    __atomic_store_n(&page.version, version + 1, __ATOMIC_RELEASE);
}

bool copy_account(const WaitReportPage& page, WaitReportPage& out) {
    for (int turn = 0; turn < kMostTurns; ++turn) {
        const uint32_t before = __atomic_load_n(&page.version, __ATOMIC_ACQUIRE);
        if (before == 0 || __atomic_load_n(&page.layout, __ATOMIC_RELAXED) != WaitReportPage::kLayout) return false;
        if (before % 2 == 0) {
            copy_behind_version(out, page);
            __atomic_thread_fence(__ATOMIC_ACQUIRE);
            if (__atomic_load_n(&page.version, __ATOMIC_RELAXED) == before) {
                out.version = before;
                out.layout = WaitReportPage::kLayout;
                return true;
            }
        }
        sched_yield();
    }
    return false;
}

}  // namespace starling
