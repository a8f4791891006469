// Patterns of output files, and the ranks that read standard input.
#include "launch/common/output_style.h"

#include <gtest/gtest.h>

#include "launch/common/input_ranks.h"

namespace starling::launch {
namespace {

TEST(OutputStyle, PatternIsExpandedWithRankHostAndJob) {
    const PatternValues values{7, 120, 2, 3, "node4"};
    EXPECT_EQ(expand_pattern("o.%r-%R-%h-%p-%g-%j%%", values), "o.7-007-node4-3-2-3%");
    EXPECT_EQ(expand_pattern(as_pattern("100%r"), values), "100%r");
    EXPECT_EQ(expand_pattern("%R", {9, 10, 0, 0, ""}), "9");
}

TEST(OutputStyle, PatternWithoutRankOrHostIsShared) {
    EXPECT_TRUE(is_shared("out"));
    EXPECT_TRUE(is_shared("100%%"));
    EXPECT_FALSE(is_shared("out-%h"));
}

TEST(OutputStyle, UnknownSpecifierIsNamed) {
    EXPECT_EQ(check_pattern("%r%h%%"), "");
    EXPECT_NE(check_pattern("%r-%t").find("'%t'"), std::string::npos);
    EXPECT_NE(check_pattern("end%"), "");
}

TEST(OutputStyle, DefaultTakesNoBytesOfAMessage) {
    Writer nothing, something;
    write_unless_default(nothing, {});
    EXPECT_EQ(nothing.take(), "");
    OutputStyle style{true, false, true, "%r ", "a%r", ""}, read;
    write_unless_default(something, style);
    const std::string bytes = something.take();
    Reader reader(bytes);
    read_style(reader, read);
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(read, style);
}

TEST(InputRanks, AllNoneAndRangesAreRead) {
    InputRanks ranks;
    ASSERT_TRUE(read_input_ranks("0,2-4", ranks));
    for (const uint32_t rank : {0u, 2u, 3u, 4u}) EXPECT_TRUE(ranks.contains(rank));
    for (const uint32_t rank : {1u, 5u}) EXPECT_FALSE(ranks.contains(rank));
    EXPECT_FALSE(ranks.is_single());
    ASSERT_TRUE(read_input_ranks("all", ranks));
    EXPECT_TRUE(ranks.contains(999999));
    ASSERT_TRUE(read_input_ranks("none", ranks));
    EXPECT_FALSE(ranks.contains(0));
    for (const char* text : {"", "x", "1-", "-1", "3-2", "1,,2", "1,"}) EXPECT_FALSE(read_input_ranks(text, ranks)) << text;
}

// Compares meets() with a search over all members of the run.
TEST(InputRanks, RunsOfRanksMeetTheRangesThatContainAMember) {
    for (uint32_t first = 0; first < 6; ++first) {
        for (uint32_t last = first; last < 6; ++last) {
            const InputRanks ranks{{{first, last}}};
            for (uint32_t start = 0; start < 5; ++start) {
                for (uint32_t stride = 1; stride < 4; ++stride) {
                    for (uint32_t count = 0; count < 4; ++count) {
                        bool meets = false;
                        for (uint32_t i = 0; i < count; ++i) meets |= ranks.contains(start + i * stride);
                        EXPECT_EQ(ranks.meets(start, stride, count), meets)
                            << first << "-" << last << " " << start << " " << stride << " " << count;
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace starling::launch
