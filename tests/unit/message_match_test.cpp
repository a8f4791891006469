// Message matching against a plain implementation of the rules: one list of receives and one of messages, searched from the front.
#include "message/match.h"

#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <memory>
#include <random>
#include <vector>

#include "mpi.h"

namespace starling::message {
namespace {

bool fits(int wanted_source, int wanted_tag, int source, int tag) {
    const bool source_fits = wanted_source == MPI_ANY_SOURCE || wanted_source == source;
    return source_fits && (wanted_tag == tag || (wanted_tag == MPI_ANY_TAG && tag >= 0));
}

ReceiveRequest* take_posted(MatchQueues& queues, int source, int tag) {
    ReceiveRequest* found = queues.find_posted(source, tag);
    if (found) found->hook.unlink();
    return found;
}

struct PlainReceive {
    int id, source, tag;
};
struct PlainMessage {
    int id, source, tag;
};

class Matching : public ::testing::TestWithParam<int> {
  protected:
    static constexpr int kNone = -1;

    explicit Matching() : random_(static_cast<unsigned>(GetParam())) {}

    int random_source() { return static_cast<int>(random_() % sources_); }
    int random_tag() { return random_() % 8 == 0 ? -7 : static_cast<int>(random_() % 3); }

    /// Delivers a message and checks which receive matches it.
    void arrive(int source, int tag) {
        int expected = kNone;
        for (auto it = receives_.begin(); it != receives_.end(); ++it) {
            if (!fits(it->source, it->tag, source, tag)) continue;
            expected = it->id;
            receives_.erase(it);
            break;
        }
        ReceiveRequest* taken = take_posted(queues_, source, tag);
        ASSERT_EQ(taken ? id_of(taken) : kNone, expected);
        if (taken) {
            EXPECT_FALSE(taken->hook.linked());
            return;
        }
        Unexpected* message = unexpected_pool.create();
        message->source = source;
        message->tag = tag;
        message->bytes = static_cast<uint64_t>(next_message_);
        queues_.add(*message);
        messages_.push_back({next_message_++, source, tag});
    }

    /// Starts a receive and checks which message it matches.
    void receive(int source, int tag) {
        Unexpected* found = probe(source, tag);
        if (HasFatalFailure()) return;
        if (found) {
            const int id = static_cast<int>(found->bytes);
            messages_.remove_if([id](const PlainMessage& m) { return m.id == id; });
            MatchQueues::remove(*found);
            unexpected_pool.destroy(found);
            return;
        }
        requests_.push_back(std::make_unique<ReceiveRequest>());
        ReceiveRequest& request = *requests_.back();
        request.source = source;
        request.tag = tag;
        request.capacity = requests_.size();
        queues_.post(request);
        receives_.push_back({id_of(&request), source, tag});
    }

    Unexpected* probe(int source, int tag) {
        int expected = kNone;
        for (const PlainMessage& m : messages_)
            if (fits(source, tag, m.source, m.tag)) {
                expected = m.id;
                break;
            }
        Unexpected* found = queues_.find(source, tag);
        EXPECT_EQ(found ? static_cast<int>(found->bytes) : kNone, expected);
        return found;
    }

    void cancel() {
        if (receives_.empty()) return;
        auto it = receives_.begin();
        std::advance(it, static_cast<long>(random_() % receives_.size()));
        requests_[static_cast<size_t>(it->id) - 1]->hook.unlink();
        receives_.erase(it);
    }

    static int id_of(const ReceiveRequest* request) { return static_cast<int>(request->capacity); }

    void TearDown() override {
        while (Unexpected* message = queues_.arrival.front()) {
            MatchQueues::remove(*message);
            unexpected_pool.destroy(message);
        }
        EXPECT_EQ(unexpected_pool.live(), 0u);
    }

    std::mt19937 random_;
    unsigned sources_ = 40;  ///< number of sources; more than there are hash buckets
    MatchQueues queues_;
    std::list<PlainReceive> receives_;
    std::list<PlainMessage> messages_;
    std::deque<std::unique_ptr<ReceiveRequest>> requests_;
    int next_message_ = 0;
};

TEST_P(Matching, PostedAndUnexpectedQueuesFollowTheMatchingRules) {
    if (GetParam() % 2) sources_ = 3;
    for (int step = 0; step < 5000 && !HasFatalFailure(); ++step) {
        // The unexpected queue grows in some periods, and the posted queue in others.
        const unsigned messages_per_16 = step / 500 % 2 ? 10 : 5;
        if (random_() % 50 == 0)
            cancel();
        else if (random_() % 16 < messages_per_16)
            arrive(random_source(), random_tag());
        else if (random_() % 4 == 0)
            probe(random_() % 3 ? random_source() : MPI_ANY_SOURCE, random_() % 3 ? random_tag() : MPI_ANY_TAG);
        else
            receive(random_() % 3 ? random_source() : MPI_ANY_SOURCE, random_() % 3 ? random_tag() : MPI_ANY_TAG);
    }
    EXPECT_GT(next_message_, 100);
    EXPECT_GT(requests_.size(), 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Matching, ::testing::Range(0, 20));

TEST(MatchQueues, TheEarlierPostedReceiveWins) {
    MatchQueues queues;
    ReceiveRequest any, specific, any_again;
    any.source = any_again.source = MPI_ANY_SOURCE;
    specific.source = 3;
    queues.post(any);
    queues.post(specific);
    queues.post(any_again);
    EXPECT_EQ(take_posted(queues, 3, 0), &any);
    EXPECT_EQ(take_posted(queues, 3, 0), &specific);
    EXPECT_EQ(take_posted(queues, 3, 0), &any_again);
    EXPECT_EQ(take_posted(queues, 3, 0), nullptr);
}

}  // namespace
}  // namespace starling::message
