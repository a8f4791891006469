#include "launch/client/settings.h"

#include <cstdio>
#include <set>
#include <utility>

#include "base/config.h"
#include "base/error.h"

namespace starling::launch {

void check_settings(std::vector<Program>& programs) {
    read_config(true);
    std::set<std::pair<std::string, std::string>> seen;
    for (Program& program : programs) {
        for (const auto& setting : program.environment) {
            if (!seen.insert(setting).second || !check_setting(setting.first.c_str(), setting.second.c_str())) continue;
            std::fprintf(stderr, "starling: %s\n", failure_text().data());
        }
        program.environment.emplace_back("STARLING_CHECKED", "1");
    }
}

}  // namespace starling::launch
