#include "launch/client/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace starling::launch {
namespace {

TEST(Settings, EachMistakeIsReportedOnceAndNotByTheProcesses) {
    setenv("STARLING_CONFIG", "none", 1);
    setenv("STARLING_WIAT", "poll", 1);
    std::vector<Program> programs(3);
    for (Program& program : programs) program.environment = {{"STARLING_SPIN_US", "much"}, {"PATH", "/x"}};
    programs[2].environment.emplace_back("STARLING_EGER_LIMIT", "1");
    ::testing::internal::CaptureStderr();
    check_settings(programs);
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 3) << told;
    EXPECT_NE(told.find("STARLING_WAIT"), std::string::npos) << told;
    EXPECT_NE(told.find("STARLING_SPIN_US=much"), std::string::npos) << told;
    EXPECT_NE(told.find("STARLING_EAGER_LIMIT"), std::string::npos) << told;
    for (const Program& program : programs)
        EXPECT_EQ(program.environment.back(), (std::pair<std::string, std::string>("STARLING_CHECKED", "1")));
}

}  // namespace
}  // namespace starling::launch
