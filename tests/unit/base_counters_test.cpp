#include "base/counters.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>

namespace starling {
namespace {

TEST(Counters, EveryCounterHasASeparateWord) {
    size_t count = 0, groups = 0;
    const Counter* rows = counter_table(count);
    counter_groups(groups);
    ASSERT_GT(count, 10u);
    std::set<std::string> names;
    std::set<unsigned> offsets{offsetof(Counters, layout), offsetof(Counters, since)};
    for (const Counter* row = rows; row != rows + count; ++row) {
        EXPECT_TRUE(names.insert(row->name).second) << row->name;
        EXPECT_TRUE(offsets.insert(row->offset).second) << row->name;
        EXPECT_EQ(row->offset % 8, 0u) << row->name;
        EXPECT_LE(row->offset + 8u, sizeof(Counters)) << row->name;
        EXPECT_LT(static_cast<size_t>(row->group), groups) << row->name;
        EXPECT_NE(std::string(row->doc), "") << row->name;
        EXPECT_NE(std::string(row->unit), "") << row->name;
        EXPECT_EQ(find_counter(row->name), row);
    }
    EXPECT_EQ(find_counter("no such counter"), nullptr);
}

TEST(Counters, HotCountersShareACacheLine) { EXPECT_LE(offsetof(Counters, bytes_inbox) + 8, 64u); }

// A counter keeps its address and value when the counters move to the page in shared memory, and that page maps the same memory.
TEST(Counters, CountersMoveIntoSharedMemory) {
    void* page = mmap(nullptr, kCounterPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    const auto& seen = *static_cast<const Counters*>(page);
    const pid_t child = fork();
    if (child == 0) {
        counters.yields = 41;
        if (!share_counters(page)) _exit(1);
        ++counters.yields;
        _exit(munmap(page, kCounterPage) == 0 && ++counters.messages_ring == 1 ? 0 : 2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(seen.layout, counter_layout());
    EXPECT_GT(seen.since, 0u);
    EXPECT_EQ(counter_value(*find_counter("yields"), seen), 42u);
    EXPECT_EQ(counter_value(*find_counter("messages_ring"), seen), 1u);
    EXPECT_EQ(counters.yields, 0u);  // this process's yields do not contain the child's
    munmap(page, kCounterPage);
}

}  // namespace
}  // namespace starling
