// Messages with contents that both sides can compute, and random traffic of them in all modes of sending and receiving, for tests of
// messages.
#pragma once

#include "message_team.h"

namespace starling::message::test {

inline const datatype::Datatype& bytes_type() { return datatype::predefined(MPI_BYTE); }

/// Bytes with a gap after every eight, so that no buffer is contiguous.
inline const datatype::Datatype& gaps_type() {
    static datatype::Datatype* made = [] {
        datatype::Datatype *vector = nullptr, *resized = nullptr;
        auto* byte = &datatype::predefined(MPI_BYTE);
        EXPECT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, false, {8}, {byte}, &vector), MPI_SUCCESS);
        EXPECT_EQ(datatype::make(MPI_COMBINER_RESIZED, false, {0, 12}, {vector}, &resized), MPI_SUCCESS);
        datatype::commit(*resized);
        return resized;
    }();
    return *made;
}

/// Properties of one message, from which both its sender and its receiver compute the contents.
struct Plan {
    int source, destination, number;
    uint64_t bytes;  ///< length of the message; a multiple of eight if `gaps`
    int tag;
    bool synchronous, gaps_out, gaps_in;

    std::byte at(uint64_t i) const {
        return static_cast<std::byte>(
            (i * 7 + (i >> 8) * 13 + static_cast<uint64_t>(number) * 31 + static_cast<uint64_t>(source * 5 + destination)) &
            0xff);
    }
};

inline uint64_t place(bool gaps, uint64_t i) { return gaps ? i / 8 * 12 + i % 8 : i; }

/// One side's buffer for a planned message.
struct Buffer {
    std::vector<std::byte> memory;
    bool gaps;
    int64_t count;

    Buffer(uint64_t bytes, bool with_gaps)
        : memory(place(with_gaps, bytes) + 1), gaps(with_gaps), count(static_cast<int64_t>(with_gaps ? bytes / 8 : bytes)) {}
    const datatype::Datatype& type() const { return gaps ? gaps_type() : bytes_type(); }
};

struct Sending {
    Plan plan;
    Buffer buffer;
    SendRequest request;
    explicit Sending(const Plan& p) : plan(p), buffer(p.bytes, p.gaps_out) {
        for (uint64_t i = 0; i < p.bytes; ++i) buffer.memory[place(p.gaps_out, i)] = p.at(i);
    }
    void start(Node& node) {
        start_send(request, *node.channel, buffer.memory.data(), buffer.count, buffer.type(), plan.destination, plan.tag,
                   plan.synchronous ? SendMode::synchronous : SendMode::standard);
    }
};

struct Receiving {
    Buffer buffer;
    ReceiveRequest request;
    Receiving(uint64_t capacity, bool gaps) : buffer(capacity, gaps) {}

    void expect(const Plan& plan) const {
        const uint64_t capacity = datatype::packed_size(buffer.type(), buffer.count);
        const uint64_t bytes = std::min(plan.bytes, capacity);
        ASSERT_TRUE(request.done);
        EXPECT_EQ(request.outcome.error, plan.bytes > capacity ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        EXPECT_EQ(request.outcome.source, plan.source);
        EXPECT_EQ(request.outcome.tag, plan.tag);
        ASSERT_EQ(request.outcome.bytes, bytes) << "message " << plan.number << " of " << plan.bytes;
        for (uint64_t i = 0; i < bytes; ++i)
            ASSERT_EQ(buffer.memory[place(buffer.gaps, i)], plan.at(i))
                << "byte " << i << " of message " << plan.number << " of " << plan.bytes;
    }
};

// --- Random traffic ---

constexpr uint64_t kSizes[] = {0,    8,    24,   32,    40,    64,    72,     896,    960, 968,
                               4000, 8192, 8200, 16384, 16392, 40000, 100000, 300000, 16,  8};

/// Returns the messages of one round; both sides compute equal ones.
inline std::vector<Plan> plan_round(int source, int destination, int round, int count) {
    std::mt19937 random(static_cast<unsigned>(round * 1000 + source * 10 + destination));
    std::vector<Plan> plans;
    for (int i = 0; i < count; ++i) {
        const bool gaps = random() % 4 == 0;
        plans.push_back({source, destination, round * count + i, kSizes[random() % std::size(kSizes)],
                         static_cast<int>(random() % 3), random() % 8 == 0, gaps, gaps && random() % 2});
        plans.back().gaps_in = random() % 4 == 0;
    }
    return plans;
}

enum class Form { source_any_tag, any_source, by_tag, matched, forms };

class Round {
  public:
    Round(Node& node, int round, bool switching)
        : node_(node), round_(round), switching_(switching), random_(static_cast<unsigned>(round * 77 + node.rank)) {}

    void run() {
        const auto form = static_cast<Form>(round_ % static_cast<int>(Form::forms));
        const bool late = round_ % 3 == 0;  // starts the receives late, so that every message is unexpected
        if (!late && form != Form::matched) post(form);
        send();
        if (late) {
            for (int i = 0; i < 50; ++i) progress::poll();
            post(form);
        }
        if (form == Form::matched && !late) post(form);
        finish(form);
    }

  private:
    static constexpr int kEach = 24;

    void disturb() {
        if (!switching_ || random_() % 4) return;
        const int other = static_cast<int>(random_() % static_cast<unsigned>(node_.size));
        link::request_close(node_.peer(other));
        if (random_() % 2) progress::poll();
    }

    void send() {
        std::vector<std::vector<Plan>> all;
        for (int d = 0; d < node_.size; ++d) all.push_back(plan_round(node_.rank, d, round_, kEach));
        for (int i = 0; i < kEach; ++i)
            for (auto& plans : all) {
                disturb();
                sends_.emplace_back(plans[static_cast<size_t>(i)]).start(node_);
            }
    }

    Receiving& post_one(int source, int tag, uint64_t capacity, bool gaps) {
        disturb();
        Receiving& receiving = receives_.emplace_back(capacity, gaps);
        start_receive(receiving.request, *node_.channel, receiving.buffer.memory.data(), receiving.buffer.count,
                      receiving.buffer.type(), source, tag);
        return receiving;
    }

    // Some buffers are too small: the truncation must not disturb the messages that follow.
    uint64_t capacity_for(const Plan& plan) {
        if (plan.bytes >= 16 && random_() % 8 == 0) return plan.bytes / 16 * 8;
        return random_() % 2 ? plan.bytes : plan.bytes + 8;
    }

    void post(Form form) {
        switch (form) {
            case Form::source_any_tag:
                for (int s = 0; s < node_.size; ++s)
                    for (const Plan& plan : plan_round(s, node_.rank, round_, kEach)) {
                        expected_.push_back(plan);
                        post_one(s, MPI_ANY_TAG, capacity_for(plan), plan.gaps_in);
                    }
                break;
            case Form::by_tag:
                for (int s = node_.size - 1; s >= 0; --s)
                    for (const int tag : {2, 0, 1})
                        for (const Plan& plan : plan_round(s, node_.rank, round_, kEach)) {
                            if (plan.tag != tag) continue;
                            expected_.push_back(plan);
                            post_one(s, tag, capacity_for(plan), plan.gaps_in);
                        }
                break;
            case Form::any_source:
                for (int i = 0; i < node_.size * kEach; ++i) post_one(MPI_ANY_SOURCE, MPI_ANY_TAG, 300000, i % 2);
                break;
            case Form::matched:
                for (int i = 0; i < node_.size * kEach; ++i) match_one();
                break;
            case Form::forms:
                break;
        }
    }

    void match_one() {
        Unexpected* found = nullptr;
        progress::wait_until([&] { return (found = node_.channel->queues().find(MPI_ANY_SOURCE, MPI_ANY_TAG)) != nullptr; });
        MatchQueues::remove(*found);
        disturb();
        Receiving& receiving = receives_.emplace_back(found->bytes, false);
        const uint64_t bytes = found->bytes;
        start_matched_receive(receiving.request, *found, receiving.buffer.memory.data(), receiving.buffer.count,
                              receiving.buffer.type());
        progress::wait(receiving.request);
        EXPECT_EQ(receiving.request.outcome.bytes, bytes);
    }

    void finish(Form form) {
        for (Receiving& receiving : receives_) progress::wait(receiving.request);
        for (Sending& sending : sends_) {
            progress::wait(sending.request);
            EXPECT_EQ(sending.request.outcome.error, MPI_SUCCESS);
        }
        if (form == Form::any_source || form == Form::matched) {
            // Expect each source's messages in the order of sending, and those of all sources in the order of posting.
            std::vector<size_t> next(static_cast<size_t>(node_.size));
            std::vector<std::vector<Plan>> plans;
            for (int s = 0; s < node_.size; ++s) plans.push_back(plan_round(s, node_.rank, round_, kEach));
            for (const Receiving& receiving : receives_) {
                const auto source = static_cast<size_t>(receiving.request.outcome.source);
                ASSERT_LT(source, next.size());
                ASSERT_LT(next[source], plans[source].size());
                receiving.expect(plans[source][next[source]++]);
            }
        } else {
            for (size_t i = 0; i < receives_.size(); ++i) receives_[i].expect(expected_[i]);
        }
    }

    Node& node_;
    const int round_;
    const bool switching_;
    std::mt19937 random_;
    std::deque<Sending> sends_;
    std::deque<Receiving> receives_;
    std::vector<Plan> expected_;
};

inline void traffic(Team& team, const Settings& settings, bool switching, int rounds,
                    const std::function<void(Node&)>& check = nullptr) {
    team.start(settings, [&](Node& node) {
        for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
            Round(node, round, switching).run();
            node.meet(4, node.size * (round + 1));  // a wildcard receive must not match a message of the next round
        }
        // Sends to other hosts complete only with the receiver's FIN.
        progress::wait_until([] { return open_sends() == 0; });
        node.barrier(0);
        progress::wait_until([] { return !link::anything_pending(); });
        if (check) check(node);
        node.barrier(1);
    });
    team.expect_success();
}

inline void traffic(std::vector<int> jobs, const Settings& settings, bool switching, int rounds,
                    const std::function<void(Node&)>& check = nullptr) {
    Team team(std::move(jobs));
    traffic(team, settings, switching, rounds, check);
}

inline void send_blocking(Node& node, uint64_t bytes, int to, int tag, int number = 0) {
    Sending sending({node.rank, to, number, bytes, tag, false, false, false});
    sending.start(node);
    progress::wait(sending.request);
    EXPECT_EQ(sending.request.outcome.error, MPI_SUCCESS);
}

}  // namespace starling::message::test
