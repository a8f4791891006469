// Hints of files: values of the program, of hint files and of variables, and what MPI_File_get_info reports.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "file/hint_text.h"
#include "file/hints.h"
#include "file/system/open_file.h"
#include "temporary_folder.h"

using namespace starling;
using namespace starling::file;

namespace {

comm::Info info_of(std::initializer_list<std::pair<const char*, const char*>> hints) {
    comm::Info info;
    for (const auto& [key, value] : hints) info.set(key, value);
    return info;
}

std::string value_of(const comm::Info& info, const char* key) {
    const std::string* const value = info.find(key);
    return value ? *value : "(none)";
}

/// Sets a variable of the environment for one test.
class Variable {
  public:
    Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    ~Variable() { ::unsetenv(name_); }

  private:
    const char* name_;
};

TEST(FileHints, ValuesOfTheProgramAreUsed) {
    const FileHints hints = read_hints(info_of({{"cb_nodes", "3"},
                                                {"cb_buffer_size", "1048576"},
                                                {"cb_config_list", "n1:2,*"},
                                                {"romio_cb_write", "enable"},
                                                {"romio_cb_read", "disable"},
                                                {"striping_unit", "65536"},
                                                {"striping_factor", "8"},
                                                {"ind_rd_buffer_size", "100"},
                                                {"file_perm", "0640"},
                                                {"starling_file_driver", "nfs"},
                                                {"panfs_layout_type", "2"}}));
    EXPECT_EQ(hints.aggregators, 3);
    EXPECT_EQ(hints.buffer_bytes, 1 << 20);
    EXPECT_EQ(hints.placement, "n1:2,*");
    EXPECT_EQ(hints.collective_write, Automatic::enable);
    EXPECT_EQ(hints.collective_read, Automatic::disable);
    EXPECT_EQ(hints.striping_unit, 65536);
    EXPECT_EQ(hints.striping_factor, 8);
    EXPECT_EQ(hints.independent_bytes, 100);
    EXPECT_EQ(hints.permissions, 0640);
    EXPECT_EQ(hints.driver, "nfs");
    EXPECT_EQ(value_of(hints.given, "panfs_layout_type"), "2");
}

TEST(FileHints, BadValuesAreIgnored) {
    const FileHints defaults;
    for (const char* bad : {"", "x", "-1", "0", "12x", " 3", "99999999999999999999999", "1e3", "0x10"}) {
        const FileHints hints = read_hints(info_of({{"cb_nodes", bad},
                                                    {"cb_buffer_size", bad},
                                                    {"romio_cb_write", bad},
                                                    {"romio_cb_read", bad},
                                                    {"romio_ds_read", bad},
                                                    {"striping_unit", bad},
                                                    {"striping_factor", bad},
                                                    {"ind_rd_buffer_size", bad},
                                                    {"starling_file_driver", bad},
                                                    {"collective_buffering", bad}}));
        EXPECT_EQ(hints.aggregators, defaults.aggregators) << bad;
        EXPECT_EQ(hints.buffer_bytes, defaults.buffer_bytes) << bad;
        EXPECT_EQ(hints.collective_write, Automatic::automatic) << bad;
        EXPECT_EQ(hints.collective_read, Automatic::automatic) << bad;
        EXPECT_EQ(hints.striping_unit, 0) << bad;
        EXPECT_EQ(hints.striping_factor, 0) << bad;
        EXPECT_EQ(hints.independent_bytes, defaults.independent_bytes) << bad;
        EXPECT_EQ(hints.driver, "") << bad;
    }
    for (const char* bad : {"", "rw-", "9", "10000", "-1"})
        EXPECT_EQ(read_hints(info_of({{"file_perm", bad}})).permissions, 0666) << bad;
}

TEST(FileHints, SmallBufferHasRoomForTwoPages) { EXPECT_EQ(read_hints(info_of({{"cb_buffer_size", "1"}})).buffer_bytes, 8192); }

TEST(FileHints, CollectiveBufferingIsTheDefaultOfBothDirections) {
    const FileHints hints = read_hints(info_of({{"romio_cb_read", "enable"}, {"collective_buffering", "false"}}));
    EXPECT_EQ(hints.collective_read, Automatic::enable);
    EXPECT_EQ(hints.collective_write, Automatic::disable);
}

TEST(FileHints, DisabledSievingHasPrecedenceOverItsBuffer) {
    EXPECT_EQ(read_hints(info_of({{"romio_ds_read", "disable"}, {"ind_rd_buffer_size", "100"}})).independent_bytes, 0);
    EXPECT_EQ(read_hints(info_of({{"ind_rd_buffer_size", "100"}, {"romio_ds_read", "disable"}})).independent_bytes, 0);
}

TEST(FileHints, HintsFileHasKeysValuesAndComments) {
    comm::Info info;
    read_hint_lines("# comment\ncb_nodes 32\n\n  striping_factor\t4  \r\nalone\ncb_config_list n01,n11\nfiller a b c", info);
    EXPECT_EQ(info.entries.size(), 4u);
    EXPECT_EQ(value_of(info, "cb_nodes"), "32");
    EXPECT_EQ(value_of(info, "striping_factor"), "4");
    EXPECT_EQ(value_of(info, "cb_config_list"), "n01,n11");
    EXPECT_EQ(value_of(info, "filler"), "a b c");
}

TEST(FileHints, TheFirstLineWithAKeyIsValid) {
    comm::Info info;
    info.set("cb_nodes", "2");
    read_hint_lines("cb_nodes 32\ncb_nodes 64\n", info);
    EXPECT_EQ(value_of(info, "cb_nodes"), "32");
}

TEST(FileHints, PatternsSelectFiles) {
    constexpr char kHints[] =
        "file1:direct_io=true,*.nc:romio_cb_write=enable:cb_nodes=8,/scratch/*/dump.*:cb_nodes=2,:x=y,bad";
    comm::Info info;
    read_hint_patterns(kHints, "/scratch/me/dump.nc", info);
    EXPECT_EQ(value_of(info, "romio_cb_write"), "enable");
    EXPECT_EQ(value_of(info, "cb_nodes"), "2");
    EXPECT_EQ(value_of(info, "direct_io"), "(none)");
    comm::Info other;
    read_hint_patterns(kHints, "file1", other);
    EXPECT_EQ(value_of(other, "direct_io"), "true");
    EXPECT_EQ(other.entries.size(), 1u);
}

TEST(FileHints, ProgramReplacesTheFileAndPatternsReplaceTheProgram) {
    TemporaryFolder folder;
    std::ofstream(folder.path("hints")) << "cb_nodes 1\nstriping_factor 1\nromio_cb_read disable\n";
    const Variable file("ROMIO_HINTS", folder.path("hints")), driver("ROMIO_FSTYPE_FORCE", "nfs:");
    const Variable patterns("MPICH_MPIIO_HINTS", "*:striping_factor=3");
    const comm::Info all = gather_hints(info_of({{"cb_nodes", "2"}, {"striping_factor", "2"}}), "/x/y");
    const FileHints hints = read_hints(all);
    EXPECT_EQ(hints.aggregators, 2);
    EXPECT_EQ(hints.striping_factor, 3);
    EXPECT_EQ(hints.collective_read, Automatic::disable);
    EXPECT_EQ(hints.driver, "nfs");
}

TEST(FileHints, UnreadableHintsFileIsReported) {
    const Variable file("ROMIO_HINTS", "/does/not/exist");
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(gather_hints({}, "x").entries.empty());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "starling: ROMIO_HINTS: can't read /does/not/exist: No such file or directory\n");
}

TEST(FileHints, DescriptionHasTheValuesInUse) {
    TemporaryFolder folder;
    OpenParams params;
    params.path = folder.path("a");
    params.read = params.write = params.create = true;
    std::unique_ptr<OpenFile> file;
    ASSERT_EQ(open_file(params, file), 0);
    comm::Info info;
    describe(read_hints(
                 info_of({{"cb_nodes", "5"}, {"romio_ds_write", "enable"}, {"romio_no_indep_rw", "true"}, {"nonsense", "1"}})),
             file->layout(), file->driver(), 8, true, info);
    EXPECT_EQ(value_of(info, "cb_nodes"), "5");
    EXPECT_EQ(value_of(info, "file_perm"), "0666");
    EXPECT_EQ(value_of(info, "cb_buffer_size"), "16777216");
    EXPECT_EQ(value_of(info, "romio_ds_write"), "disable");
    EXPECT_EQ(value_of(info, "romio_no_indep_rw"), "false");
    EXPECT_EQ(value_of(info, "starling_file_driver"), "posix");
    EXPECT_EQ(value_of(info, "striping_unit"), std::to_string(file->layout().unit));
    EXPECT_EQ(value_of(info, "nonsense"), "(none)");
    EXPECT_EQ(value_of(info, "romio_visibility_immediate"), "true");
    describe(read_hints(info_of({{"cb_nodes", "64"}, {"romio_cb_write", "ENABLE"}, {"romio_ds_read", "DISABLE"}})),
             file->layout(), file->driver(), 4, false, info);
    EXPECT_EQ(value_of(info, "cb_nodes"), "4") << "no more than the file has members";
    EXPECT_EQ(value_of(info, "romio_cb_write"), "enable") << "ROMIO accepts capital letters";
    EXPECT_EQ(value_of(info, "romio_ds_read"), "disable");
    EXPECT_EQ(value_of(info, "romio_visibility_immediate"), "false");
}

}  // namespace
