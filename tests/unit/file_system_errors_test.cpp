// Error classes and sentences of failed calls on files, and prefixes of names.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "file/system/open_file.h"
#include "mpi.h"

using namespace starling;
using namespace starling::file;

namespace {

TEST(FileErrors, HaveTheClassesOfTheStandard) {
    const std::pair<int, int> expected[] = {
        {ENOENT, MPI_ERR_NO_SUCH_FILE},
        {EEXIST, MPI_ERR_FILE_EXISTS},
        {EACCES, MPI_ERR_ACCESS},
        {EISDIR, MPI_ERR_BAD_FILE},
        {ENAMETOOLONG, MPI_ERR_BAD_FILE},
        {ENOSPC, MPI_ERR_NO_SPACE},
        {EDQUOT, MPI_ERR_QUOTA},
        {EROFS, MPI_ERR_READ_ONLY},
        {EBUSY, MPI_ERR_FILE_IN_USE},
        {ETXTBSY, MPI_ERR_FILE_IN_USE},
        {EIO, MPI_ERR_IO},
        {EFBIG, MPI_ERR_NO_SPACE},
        {ENOLCK, MPI_ERR_UNSUPPORTED_OPERATION},
        {ENOTSUP, MPI_ERR_UNSUPPORTED_OPERATION},
        {EMFILE, MPI_ERR_IO},
        {ESTALE, MPI_ERR_IO},
        {ENOMEM, MPI_ERR_NO_MEM},
        {EPROTO, MPI_ERR_IO},
    };
    for (const auto& [system_error, error_class] : expected)
        EXPECT_EQ(fail_of(system_error, "open", "/tmp/x"), error_class) << system_error;
}

TEST(FileErrors, SentenceHasActionFileReasonAndRemedy) {
    fail_of(ENOSPC, "write to", "/scratch/out.nc");
    EXPECT_EQ(failure_text(),
              "cannot write to file /scratch/out.nc: No space left on device; free space on the file system (`df`, and "
              "`df -i` for files), or use another one");
}

TEST(FileErrors, MissingRelativeNameShowsTheWorkingDirectory) {
    fail_of(ENOENT, "open", "data/x");
    char folder[4096];
    ASSERT_NE(::getcwd(folder, sizeof folder), nullptr);
    EXPECT_NE(failure_text().find("data/x in the working directory " + std::string(folder)), std::string_view::npos)
        << failure_text();
    fail_of(ENOENT, "open", "/data/x");
    EXPECT_EQ(failure_text().find("working directory"), std::string_view::npos);
}

TEST(FileErrors, LongNameLeavesRoomForReasonAndRemedy) {
    fail_of(ENAMETOOLONG, "open", "/" + std::string(9000, 'x') + "end");
    EXPECT_NE(failure_text().find("end: File name too long; use a shorter name"), std::string_view::npos) << failure_text();
}

TEST(FilePrefixes, NameADriverAndLeaveTheRest) {
    const std::pair<const char*, const char*> expected[] = {
        {"ufs:", "posix"}, {"nfs:", "nfs"}, {"lustre:", "lustre"}, {"gpfs:", "posix"}};
    for (const auto& [prefix, driver] : expected) {
        std::string name = std::string(prefix) + "/a:b";
        EXPECT_EQ(split_prefix(name), driver);
        EXPECT_EQ(name, "/a:b");
    }
}

TEST(FilePrefixes, UnknownPrefixAndSingleLetterArePartsOfTheName) {
    for (const char* given : {"c:/x", "what:/x", "/ufs:x", "ufs", ":x", ""}) {
        std::string name = given;
        EXPECT_EQ(split_prefix(name), "");
        EXPECT_EQ(name, given);
    }
}

}  // namespace
