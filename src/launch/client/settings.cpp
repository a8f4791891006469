#include "launch/client/settings.h"

#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/config.h"
#include "base/error.h"

namespace starling::launch {

void apply_settings(const std::vector<std::pair<std::string, std::string>>& settings) {
    for (const auto& [name, value] : settings) setenv(name.c_str(), value.c_str(), 1);
}

void check_settings(std::vector<Program>& programs) {
    read_config(true);
    std::set<std::pair<std::string, std::string>> seen;
    for (Program& program : programs) {
        for (const auto& setting : program.environment) {
            if (!seen.insert(setting).second || !check_setting(setting.first.c_str(), setting.second.c_str())) continue;
            std::fprintf(stderr, "starling: %s=%.100s is ignored: %s\n", setting.first.c_str(), setting.second.c_str(),
                         failure_text().data());
        }
        program.environment.emplace_back("STARLING_CHECKED", "1");
    }
}

}  // namespace starling::launch
