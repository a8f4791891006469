// Process groups, compared with a plain list of processes.
#include "comm/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "job/job_segment.h"
#include "link/job.h"

namespace starling::comm {
namespace {

using List = std::vector<link::Process>;

class Groups : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        job::JobSegment segment;
        ASSERT_EQ(job::JobSegment::create(64, nullptr, 0, segment), MPI_SUCCESS);
        own = link::adopt_own_job(std::move(segment), 5);
        other = link::find_job({.id = 0x1234567890, .owner_pid = 4711, .owner_fd = 3});
    }

    // Returns distinct processes of two jobs: runs with random strides, and single ones.
    List random_list() {
        List list;
        const int pieces = static_cast<int>(random() % 12);
        for (int piece = 0; piece < pieces; ++piece) {
            link::Job* job = random() % 3 ? own : other;
            int rank = static_cast<int>(random() % 64);
            const int stride = static_cast<int>(random() % 7) - 3;
            const int count = random() % 2 ? 1 : static_cast<int>(random() % 10);
            for (int i = 0; i < count; ++i, rank += stride ? stride : 1) {
                if (rank < 0 || rank > 63) break;
                const link::Process process{job, static_cast<uint32_t>(rank)};
                if (std::find(list.begin(), list.end(), process) == list.end()) list.push_back(process);
            }
        }
        return list;
    }

    static Group* make(const List& list) {
        GroupBuilder builder;
        for (const link::Process& process : list) builder.add(process);
        return builder.build();
    }

    static List members(const Group& group) {
        List list;
        for (int rank = 0; rank < group.size(); ++rank) list.push_back(group.at(rank));
        return list;
    }

    static bool contains(const List& list, const link::Process& process) {
        return std::find(list.begin(), list.end(), process) != list.end();
    }

    void expect(Group* group, const List& wanted) {
        EXPECT_EQ(members(*group), wanted);
        Group* plain = make(wanted);
        EXPECT_TRUE(group->identical(*plain)) << "the same processes must give the same runs";
        plain->release();
        group->release();
    }

    std::mt19937 random{20261121};
    static inline link::Job* own = nullptr;
    static inline link::Job* other = nullptr;
};

TEST_F(Groups, AWholeJobIsOneRunWhateverItsSize) {
    GroupBuilder builder;
    builder.add(comm::GroupRun{own, 0, 1, 1 << 30});
    Group* group = builder.build();
    EXPECT_EQ(group->size(), 1 << 30);
    EXPECT_EQ(group->runs().size(), 1u);
    EXPECT_EQ(group->at(123456789).rank, 123456789u);
    EXPECT_EQ(group->rank_of({own, 987654321}), 987654321);
    EXPECT_EQ(group->rank_of({other, 1}), MPI_UNDEFINED);
    group->release();
}

TEST_F(Groups, RanksBothWays) {
    for (int round = 0; round < 500; ++round) {
        const List list = random_list();
        Group* group = make(list);
        ASSERT_EQ(members(*group), list);
        for (int rank = 0; rank < 64; ++rank) {
            for (link::Job* job : {own, other}) {
                const link::Process process{job, static_cast<uint32_t>(rank)};
                const auto found = std::find(list.begin(), list.end(), process);
                ASSERT_EQ(group->rank_of(process),
                          found == list.end() ? MPI_UNDEFINED : static_cast<int>(found - list.begin()));
            }
        }
        group->release();
    }
}

TEST_F(Groups, ALargeIrregularGroupIsIndexed) {
    List list;
    for (uint32_t rank = 0; rank < 5000; ++rank) list.push_back({own, rank});
    std::shuffle(list.begin(), list.end(), random);
    Group* group = make(list);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(group->rank_of(list[static_cast<size_t>(i)]), i);
    EXPECT_EQ(group->rank_of({own, 5000}), MPI_UNDEFINED);
    group->release();
}

TEST_F(Groups, SetOperations) {
    for (int round = 0; round < 500; ++round) {
        const List x = random_list(), y = random_list();
        List both, all = x, only_x;
        for (const link::Process& p : x) (contains(y, p) ? both : only_x).push_back(p);
        for (const link::Process& p : y)
            if (!contains(x, p)) all.push_back(p);
        Group *a = make(x), *b = make(y);
        expect(union_of(*a, *b), all);
        expect(intersection_of(*a, *b), both);
        expect(difference_of(*a, *b), only_x);
        EXPECT_EQ(disjoint(*a, *b), both.empty());
        expect(union_of(*a, *a), x);
        expect(intersection_of(*a, *a), x);
        expect(difference_of(*a, *a), {});
        a->release();
        b->release();
    }
}

TEST_F(Groups, IncludeAndExclude) {
    for (int round = 0; round < 300; ++round) {
        const List list = random_list();
        Group* group = make(list);
        std::vector<int> ranks(list.size());
        for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
        std::shuffle(ranks.begin(), ranks.end(), random);
        if (!ranks.empty()) ranks.resize(random() % ranks.size());
        List taken, left;
        std::vector<bool> excluded(list.size());
        for (const int rank : ranks) {
            taken.push_back(list[static_cast<size_t>(rank)]);
            excluded[static_cast<size_t>(rank)] = true;
        }
        for (size_t i = 0; i < list.size(); ++i)
            if (!excluded[i]) left.push_back(list[i]);
        expect(include(*group, ranks), taken);
        expect(exclude(*group, excluded), left);
        group->release();
    }
}

TEST_F(Groups, Slices) {
    for (int round = 0; round < 1000; ++round) {
        const List list = random_list();
        if (list.empty()) continue;
        Group* group = make(list);
        GroupBuilder builder;
        List wanted;
        for (int piece = 0; piece < 3; ++piece) {
            const int size = static_cast<int>(list.size());
            const int first = static_cast<int>(random() % list.size());
            int stride = static_cast<int>(random() % 9) - 4;
            if (stride == 0) stride = 1;
            const int room = stride > 0 ? (size - 1 - first) / stride : first / -stride;
            const int count = static_cast<int>(random() % static_cast<unsigned>(room + 1)) + 1;
            builder.add_slice(*group, first, stride, count);
            for (int i = 0; i < count; ++i) wanted.push_back(list[static_cast<size_t>(first + i * stride)]);
        }
        expect(builder.build(), wanted);
        group->release();
    }
}

TEST_F(Groups, Comparison) {
    const List list{{own, 3}, {own, 4}, {other, 0}};
    List turned{list.rbegin(), list.rend()};
    Group *a = make(list), *b = make(list), *c = make(turned), *d = make({{own, 3}, {own, 4}, {other, 1}});
    EXPECT_EQ(compare(*a, *b), MPI_IDENT);
    EXPECT_EQ(compare(*a, *c), MPI_SIMILAR);
    EXPECT_EQ(compare(*a, *d), MPI_UNEQUAL);
    EXPECT_EQ(compare(*a, *empty_group()), MPI_UNEQUAL);
    for (Group* group : {a, b, c, d}) group->release();
}

TEST_F(Groups, SurviveEncodingAndDecoding) {
    for (int round = 0; round < 200; ++round) {
        const List list = random_list();
        Group* group = make(list);
        Group* copy = decode_group(encode(*group));
        ASSERT_NE(copy, nullptr);
        EXPECT_TRUE(copy->identical(*group));
        copy->release();
        group->release();
    }
}

TEST_F(Groups, MalformedBytesAreRefused) {
    Group* group = make({{own, 1}, {own, 7}, {other, 3}, {own, 2}});
    const std::string bytes = encode(*group);
    group->release();
    for (size_t length = 0; length < bytes.size(); ++length)
        EXPECT_EQ(decode_group(std::string_view(bytes).substr(0, length)), nullptr);
    EXPECT_EQ(decode_group(bytes + '\0'), nullptr);
    for (int round = 0; round < 20000; ++round) {
        std::string broken = bytes;
        for (int i = 0; i < 3; ++i) broken[random() % broken.size()] = static_cast<char>(random());
        if (Group* result = decode_group(broken)) {
            EXPECT_GE(result->size(), 0);
            if (result->size() > 0) result->rank_of(result->at(result->size() - 1));
            result->release();
        }
    }
}

TEST_F(Groups, HandlesAreCountedApartFromReferences) {
    Group* group = make({{own, 1}});
    group->retain();  // a reference as communicators hold one
    const MPI_Group handle = add_handle(group);
    EXPECT_EQ(from_handle(handle), group);
    drop_handle(group);
    EXPECT_EQ(from_handle(handle), nullptr) << "a freed handle must not work though the group lives";
    EXPECT_EQ(group->size(), 1);
    group->release();
}

TEST_F(Groups, EmptyGroupsAreTheEmptyGroup) {
    EXPECT_EQ(add_handle(make({})), MPI_GROUP_EMPTY);
    EXPECT_EQ(from_handle(MPI_GROUP_EMPTY)->size(), 0);
    EXPECT_EQ(from_handle(MPI_GROUP_NULL), nullptr);
    drop_handle(empty_group());
    EXPECT_NE(from_handle(MPI_GROUP_EMPTY), nullptr);
}

}  // namespace
}  // namespace starling::comm
