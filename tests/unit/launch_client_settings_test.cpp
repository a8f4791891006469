#include "launch/client/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/config.h"
#include "launch/client/options.h"

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

TEST(Settings, MpiexecObeysEachVariableOfItsScope) {
    setenv("STARLING_CONFIG", "none", 1);
    size_t count = 0, tried = 0;
    const Variable* rows = variables(count);
    for (size_t i = 0; i < count; ++i) {
        if (rows[i].scope != VariableScope::launcher || rows[i].type == VariableType::reserved) continue;
        const Config usual;
        char before[100], after[100];
        print_value(rows[i], usual, before, sizeof before);
        std::string value = "word";
        if (rows[i].type == VariableType::integer) value = std::to_string(std::stoll(before) + 1);
        if (rows[i].type == VariableType::flag) value = before == std::string("on") ? "off" : "on";
        if (rows[i].type == VariableType::choice) value = rows[i].choices[before == std::string(rows[i].choices[0]) ? 1 : 0];
        Options options;
        ASSERT_EQ(parse_options({"--set", rows[i].name + ("=" + value), "a"}, options), "") << rows[i].name;
        apply_settings(options.settings);
        read_config(false);
        print_value(rows[i], config(), after, sizeof after);
        EXPECT_EQ(after, value) << rows[i].name;
        EXPECT_EQ(source_of(rows[i]), VariableSource::environment) << rows[i].name;
        unsetenv(rows[i].name);
        ++tried;
    }
    EXPECT_GE(tried, 12u);
}

TEST(Settings, TheVariablesThatIdentifyARankAreNotMpiexecs) {
    Options options;
    ASSERT_EQ(parse_options({"--set", "rank=3", "--set", "spin-us=7", "a"}, options), "");
    ASSERT_EQ(options.settings.size(), 1u);
    EXPECT_EQ(options.settings[0].first, "STARLING_SPIN_US");
    EXPECT_EQ(options.programs[0].environment.size(), 2u);
}

}  // namespace
}  // namespace starling::launch
