#include "base/config.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/recovery_defaults.h"
#include "mpi.h"

namespace starling {
namespace {

std::string printed(const char* name) {
    char text[100];
    print_value(*find_variable(name), config(), text, sizeof text);
    return text;
}

std::string complaint(const char* name, const char* value) {
    return check_setting(name, value) == MPI_SUCCESS ? "" : std::string(failure_text());
}

TEST(Config, EveryVariableHasANameADocumentationAndAValidDefault) {
    size_t count = 0;
    const Variable* rows = variables(count);
    ASSERT_GT(count, 5u);
    for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(std::string(rows[i].name).rfind("STARLING_", 0), 0u) << rows[i].name;
        EXPECT_GT(std::string(rows[i].doc).size(), 10u) << rows[i].name;
        EXPECT_EQ(find_variable(rows[i].name), &rows[i]) << "listed twice: " << rows[i].name;
        char text[100];
        print_value(rows[i], Config(), text, sizeof text);
        EXPECT_EQ(check_setting(rows[i].name, text), MPI_SUCCESS) << failure_text();
    }
}

TEST(Config, DefaultsOfRecoveryAreValidAndShorter) {
    size_t count = 0;
    const RecoveryDefault* const rows = recovery_defaults(count);
    for (const RecoveryDefault* row = rows; row != rows + count; ++row) {
        EXPECT_EQ(check_setting(row->name, std::to_string(row->value).c_str()), MPI_SUCCESS) << failure_text();
        EXPECT_LT(row->value, std::stoll(printed(row->name))) << row->name;
        EXPECT_EQ(value_with_recovery(row->name), row->value);
    }
}

TEST(Config, TheUserSValueReplacesADefaultOfRecovery) {
    use_recovery_default("STARLING_REATTACH_MS");
    EXPECT_EQ(config().reattach_ms, value_with_recovery("STARLING_REATTACH_MS"));
    EXPECT_EQ(source_of(*find_variable("STARLING_REATTACH_MS")), VariableSource::built_in);
    EXPECT_EQ(set_variable("STARLING_SILENCE_MS", "7000"), MPI_SUCCESS);
    EXPECT_EQ(value_with_recovery("STARLING_SILENCE_MS"), 7000);
    use_recovery_default("STARLING_SILENCE_MS");
    EXPECT_EQ(config().silence_ms, 7000);
}

TEST(Config, TypedValues) {
    EXPECT_EQ(set_variable("STARLING_WAIT", "Poll"), MPI_SUCCESS);
    EXPECT_EQ(config().wait, WaitPolicy::poll);
    EXPECT_EQ(set_variable("STARLING_SINGLE_COPY", "off"), MPI_SUCCESS);
    EXPECT_EQ(config().single_copy, SingleCopy::off);
    EXPECT_EQ(set_variable("STARLING_EAGER_LIMIT", "16K"), MPI_SUCCESS);
    EXPECT_EQ(config().eager_limit, 16384u);
    EXPECT_EQ(set_variable("STARLING_EAGER_LIMIT", "32 kiB"), MPI_SUCCESS);
    EXPECT_EQ(printed("STARLING_EAGER_LIMIT"), "32768");
    EXPECT_EQ(set_variable("STARLING_MAX_DIRECT", "0"), MPI_SUCCESS);
    EXPECT_EQ(config().max_direct, 0);
    EXPECT_EQ(source_of(*find_variable("STARLING_MAX_DIRECT")), VariableSource::program);
}

TEST(Config, InvalidValuesAreRefusedWithTheAllowedOnes) {
    const int64_t before = config().spin_us;
    for (const char* bad : {"", "x", "1x", "-1", "99999999999999999999", "1e3", "2K"}) {
        EXPECT_EQ(set_variable("STARLING_SPIN_US", bad), MPI_ERR_ARG) << bad;
    }
    EXPECT_EQ(config().spin_us, before);
    EXPECT_NE(complaint("STARLING_WAIT", "fast").find("poll, adaptive or thread"), std::string::npos);
    EXPECT_NE(complaint("STARLING_EAGER_LIMIT", "9999G").find("from 0 to 1048576 bytes"), std::string::npos);
    EXPECT_NE(complaint("STARLING_EAGER_LIMIT", "9999999999G"), "");
}

TEST(Config, MisspelledNamesSuggestTheNearest) {
    EXPECT_NE(complaint("STARLING_WIAT", "poll").find("did you mean STARLING_WAIT?"), std::string::npos)
        << complaint("STARLING_WIAT", "poll");
    EXPECT_NE(complaint("STARLING_EAGERLIMIT", "1").find("STARLING_EAGER_LIMIT"), std::string::npos);
    EXPECT_EQ(complaint("STARLING_QXZVJPKWWW", "1").find("did you mean"), std::string::npos);
    EXPECT_NE(complaint(("STARLING_" + std::string(500, 'X')).c_str(), "1"), "");
    EXPECT_EQ(complaint("OTHER_WIAT", "poll"), "");
    EXPECT_EQ(complaint("STARLING_RANK", "3"), "");
}

TEST(Config, EnvironmentOverridesTheFile) {
    const std::string path = ::testing::TempDir() + "config_test.conf";
    std::ofstream(path) << "# comment\n\n  verbose = 2  \nSTARLING_MAX_DIRECT=7\nwait=nonsense\nnot a setting\n";
    setenv("STARLING_CONFIG", path.c_str(), 1);
    setenv("STARLING_MAX_DIRECT", "9", 1);
    setenv("STARLING_NO_SUCH", "9", 1);
    ::testing::internal::CaptureStderr();
    read_config(true);
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(failure_text(), "");
    EXPECT_EQ(config().verbose, 2);
    EXPECT_EQ(source_of(*find_variable("STARLING_VERBOSE")), VariableSource::file);
    EXPECT_EQ(config().max_direct, 9);
    EXPECT_EQ(source_of(*find_variable("STARLING_MAX_DIRECT")), VariableSource::environment);
    EXPECT_NE(told.find("STARLING_WAIT=nonsense"), std::string::npos) << told;
    EXPECT_NE(told.find("config_test.conf, line 5: STARLING_WAIT=nonsense is ignored"), std::string::npos) << told;
    EXPECT_NE(told.find("config_test.conf, line 6: 'not a setting' is ignored"), std::string::npos) << told;
    EXPECT_NE(told.find("not a setting"), std::string::npos) << told;
    EXPECT_NE(told.find("STARLING_NO_SUCH"), std::string::npos) << told;
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 3) << told;
    ::testing::internal::CaptureStderr();
    read_config(false);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    unlink(path.c_str());
}

TEST(Config, OneProcessReportsMistakes) {
    setenv("STARLING_RANK", "1", 1);
    EXPECT_FALSE(reports_settings());
    setenv("STARLING_RANK", "0", 1);
    EXPECT_TRUE(reports_settings());
    setenv("STARLING_CHECKED", "1", 1);
    EXPECT_FALSE(reports_settings());
    unsetenv("STARLING_CHECKED");
    unsetenv("STARLING_RANK");
    for (const char* name : {"PMIX_RANK", "PMI_RANK"}) {
        setenv(name, "3", 1);
        EXPECT_FALSE(reports_settings()) << name;
        unsetenv(name);
    }
    EXPECT_TRUE(reports_settings());
}

}  // namespace
}  // namespace starling
