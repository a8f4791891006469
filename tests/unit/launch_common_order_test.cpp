// The layout of a job's programs in messages, which all releases with the same wire version read.
#include <gtest/gtest.h>

#include <string>

#include "base/wire.h"
#include "launch/common/client_protocol.h"

namespace starling::launch {
namespace {

Submission submission(bool uncounted) {
    Submission one;
    one.spec.programs.resize(1);
    Program& program = one.spec.programs[0];
    program.argv = {"a.out"};
    program.count = 3;
    program.uncounted = uncounted;
    program.directory = "/home";
    program.forward = Forward::all;
    program.appnum = 5;
    return one;
}

// Reads the word after the fields of Wire 1.0 that precede it.
uint32_t forward_word(const std::string& bytes) {
    Reader reader(bytes);
    reader.number<uint32_t>();                 // wire version
    reader.string();                           // release
    EXPECT_EQ(reader.number<uint32_t>(), 1u);  // programs
    EXPECT_EQ(reader.number<uint32_t>(), 1u);  // words
    EXPECT_EQ(reader.string(), "a.out");
    EXPECT_EQ(reader.number<uint32_t>(), 3u);  // processes
    EXPECT_EQ(reader.string(), "/home");       // directory
    EXPECT_EQ(reader.string(), "");            // search path
    EXPECT_EQ(reader.number<uint32_t>(), 0u);  // variables
    const auto word = reader.number<uint32_t>();
    EXPECT_EQ(reader.number<int32_t>(), 5);  // number of the command
    return word;
}

TEST(ProgramLayout, OlderReleasesReadAProgramWithANumberAndRefuseOneWithout) {
    EXPECT_EQ(forward_word(encode(submission(false))), static_cast<uint32_t>(Forward::all));
    EXPECT_GT(forward_word(encode(submission(true))), static_cast<uint32_t>(Forward::none));
}

TEST(ProgramLayout, IsReadBack) {
    for (const bool uncounted : {false, true}) {
        Submission read;
        ASSERT_TRUE(decode(encode(submission(uncounted)), read));
        EXPECT_EQ(read.spec.programs[0].uncounted, uncounted);
        EXPECT_EQ(read.spec.programs[0].forward, Forward::all);
        EXPECT_EQ(read.spec.programs[0].count, 3u);
    }
}

}  // namespace
}  // namespace starling::launch
