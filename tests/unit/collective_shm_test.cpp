// The protocols of the shared-memory stage in all interleavings: at every access to shared memory, another participant may continue.
// Sleeping is modeled too, so that a lost wake shows as a deadlock.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "collective/collective_request.h"
#include "collective/shm/layout.h"
#include "collective/shm/protocols.h"
#include "collective/shm/stage.h"

#include "../simulation/fiber.h"

namespace {

using namespace starling::collective;
using starling::simulation::Fiber;

#if defined(__SANITIZE_ADDRESS__)
/// Divisor of the number of runs: AddressSanitizer makes them slow, and looks for memory errors, not for wrong orders.
constexpr int kFewer = 10;
#else
constexpr int kFewer = 1;
#endif

/// Decides which participant continues: at random, or through all schedules with at most `preemptions` switches that are not forced.
class Scheduler {
  public:
    explicit Scheduler(int preemptions) : preemptions_(preemptions) {}
    explicit Scheduler(uint64_t seed) : random_(seed), at_random_(true) {}

    void restart() {
        depth_ = 0;
        used_ = 0;
    }
    /// Returns one of `ready`, whose first element is the running participant if it can continue.
    int pick(const std::vector<int>& ready, bool can_stay) {
        size_t choices = ready.size();
        if (at_random_) return ready[random_() % choices];
        if (can_stay && used_ == preemptions_) choices = 1;
        if (choices == 1) return ready[0];
        if (depth_ == path_.size()) path_.push_back({0, choices});
        const size_t choice = path_[depth_++].choice;
        if (can_stay && choice != 0) ++used_;
        return ready[choice];
    }
    bool next() {
        while (!path_.empty() && path_.back().choice + 1 == path_.back().of) path_.pop_back();
        if (path_.empty()) return false;
        ++path_.back().choice;
        return true;
    }

  private:
    struct Step {
        size_t choice, of;
    };
    std::mt19937_64 random_;
    bool at_random_ = false;
    int preemptions_ = 0, used_ = 0;
    std::vector<Step> path_;
    size_t depth_ = 0;
};

/// Runs the participants on separate stacks, one at a time.
class Machine {
  public:
    Machine(Scheduler& scheduler, int n) : scheduler_(scheduler), participants_(static_cast<size_t>(n)) {}
    Machine(const Machine&) = delete;

    /// Runs the body once per participant; returns whether all ended, false on a deadlock. Participant `dead` does not run. When no other
    /// participant can continue, their waits return false.
    bool run(const std::function<void(int)>& body, int dead = -1) {
        body_ = &body;
        dead_ = dead;
        current = this;
        scheduler_.restart();
        for (size_t i = 0; i < participants_.size(); ++i) {
            participants_[i] = Participant{.stack = &Stack::of(i), .done = static_cast<int>(i) == dead};
        }
        running_ = -1;
        for (;;) {
            std::vector<int> ready;
            const bool can_stay = running_ >= 0 && can_run(running_);
            if (can_stay) ready.push_back(running_);
            for (int i = 0; i < static_cast<int>(participants_.size()); ++i)
                if (i != running_ && can_run(i)) ready.push_back(i);
            if (ready.empty()) {
                bool all_done = true;
                for (auto& p : participants_) all_done = all_done && p.done;
                if (all_done) return true;
                if (dead_ < 0 || given_up_) return false;
                given_up_ = true;
                continue;
            }
            running_ = scheduler_.pick(ready, can_stay);
            participants_[static_cast<size_t>(running_)].stack->fiber.enter();
        }
    }

    /// A point at which another participant may continue.
    void point() { suspend(); }

    // Models the progress engine's sleep: announce it, check the condition again, sleep until rung.
    bool wait(const std::function<bool()>& condition) {
        Participant& me = participants_[static_cast<size_t>(running_)];
        for (;;) {
            if (condition()) return true;
            if (given_up_) return false;
            point();
            me.rung = false;
            me.sleeping = true;
            if (condition()) {
                me.sleeping = false;
                return true;
            }
            // As with a futex, do not sleep if the doorbell was rung since the announcement.
            if (!me.rung) {
                me.asleep = true;
                suspend();
            }
            me.asleep = me.sleeping = false;
        }
    }
    void wake(int i) {
        Participant& p = participants_[static_cast<size_t>(i)];
        point();
        if (!p.sleeping) return;
        p.rung = true;
        p.asleep = false;
    }
    int size() const { return static_cast<int>(participants_.size()); }

    static Machine* current;

  private:
    /// Stacks are reused by the next machine, because there are many machines.
    struct Stack {
        bool busy = false;
        Fiber fiber{[](void* stack) { static_cast<Stack*>(stack)->serve(); }, this};

        void serve() {
            for (;;) {
                busy = true;
                Machine& machine = *current;
                const auto me = static_cast<size_t>(machine.running_);
                (*machine.body_)(machine.running_);
                machine.participants_[me].done = true;
                busy = false;
                fiber.leave();
            }
        }
        static Stack& of(size_t index) {
            static std::vector<std::unique_ptr<Stack>> stacks;
            while (stacks.size() <= index) stacks.push_back(std::make_unique<Stack>());
            // After a deadlock, a participant's body is still suspended on this stack, so replace the stack.
            if (stacks[index]->busy) stacks[index] = std::make_unique<Stack>();
            return *stacks[index];
        }
    };
    struct Participant {
        Stack* stack = nullptr;
        bool done = false, sleeping = false, rung = false, asleep = false;
    };
    bool can_run(int i) const {
        const Participant& p = participants_[static_cast<size_t>(i)];
        return !p.done && (!p.asleep || given_up_);
    }

    void suspend() { participants_[static_cast<size_t>(running_)].stack->fiber.leave(); }

    Scheduler& scheduler_;
    std::vector<Participant> participants_;
    const std::function<void(int)>* body_ = nullptr;
    int running_ = -1, dead_ = -1;
    bool given_up_ = false;
};
Machine* Machine::current = nullptr;

/// Outbox blocks of all participants, so few that often none is free. A block is free again exactly when all participants have finished
/// with it.
struct Places {
    static constexpr int kMost = 2;
    struct Place {
        uint32_t data[2];
        uint32_t until;
    };
    std::vector<std::array<Place, kMost>> of;
    int used = kMost;  ///< number of blocks in use per participant
};

/// A condition that a participant's coroutine waits for.
struct Awaited {
    std::function<bool()> ready;
    bool* here;
    std::coroutine_handle<> waiter;
};

struct ModelSync {
    int me;
    Places* places;
    NodeLayout layout;
    std::vector<Awaited>* awaited;
    std::byte* allocate(uint32_t, uint64_t number, uint32_t finished, uint32_t& place) {
        const auto back = [&](uint32_t until) {
            if (come_to(finished, until)) return true;
            for (int i = 0; i < Machine::current->size(); ++i)
                if (!come_to(load(layout.done(i)), until)) return false;
            return true;
        };
        auto& mine = places->of[static_cast<size_t>(me)];
        for (int i = 0; i < places->used; ++i) {
            Places::Place& each = mine[static_cast<size_t>(i)];
            if (!back(each.until)) continue;
            each.until = static_cast<uint32_t>(number);
            place = static_cast<uint32_t>(i) + 1;
            return reinterpret_cast<std::byte*>(each.data);
        }
        return nullptr;
    }
    std::byte* lent(int participant, uint32_t place) const {
        return reinterpret_cast<std::byte*>(places->of[static_cast<size_t>(participant)][place - 1].data);
    }
    static bool come_to(uint32_t value, uint32_t wanted) { return static_cast<int32_t>(value - wanted) >= 0; }
    uint32_t load(const std::atomic<uint32_t>& word) const {
        Machine::current->point();
        return word.load();
    }
    void store(std::atomic<uint32_t>& word, uint32_t value) const {
        Machine::current->point();
        word.store(value);
    }
    void publish(std::atomic<uint32_t>& word, uint32_t value) const { store(word, value); }
    void fence() const {}
    uint32_t add(std::atomic<uint32_t>& word, uint32_t value) const {
        Machine::current->point();
        return word.fetch_add(value);
    }
    template <class Condition>
    bool wait(Condition condition, const starling::collective::NodeWait&) const {
        return Machine::current->wait(std::ref(condition));
    }
    template <class Condition>
    struct Until {
        const ModelSync& sync;
        const Condition& condition;
        bool here = false;
        bool await_ready() { return here = condition(); }
        void await_suspend(std::coroutine_handle<> waiter) { sync.awaited->push_back({std::ref(condition), &here, waiter}); }
        bool await_resume() const { return here; }
    };
    template <class Condition, class Layout>
    Until<Condition> until(const Condition& condition, const NodeWait&, const Layout&) const {
        return {*this, condition};
    }
    void wake(int participant) const { Machine::current->wake(participant); }
    void wake_all() const {
        for (int i = 0; i < Machine::current->size(); ++i)
            if (i != me) wake(i);
    }
};

using Stage = NodeStage<ModelSync>;

/// The driver of operations: blocking calls; coroutines in turn; or lanes, which carry out several at a time if a lane supports them.
enum class Driver { blocking, awaited, lanes };

/// One participant: its stage and its outstanding operations.
class Member {
  public:
    Member(std::byte* base, int n, int me, Places* places, uint32_t first, int few)
        : stage_(base, n, me, ModelSync{me, places, NodeLayout(base, n), &awaited_}, first, few) {}

    Stage& stage() { return stage_; }
    /// Runs the operation to its end (blocking driver), or starts it.
    template <class Operation>
    void call(Driver driver, Operation operation) {
        if (driver == Driver::blocking) {
            count(stage_.run(operation));
            return;
        }
        requests_.push_back(std::make_unique<CollectiveRequest>());
        NodeLanes<Stage>& lanes = stage_.lanes();
        const bool in_lane = driver == Driver::lanes && lanes.holds(operation);
        if constexpr (requires { operation.room_bytes(); }) {
            if (in_lane) start(lanes.drive(lanes.draw(), operation), *requests_.back());
        }
        if (!in_lane) { start(stage_.drive(QueueTurn(turns_), operation), *requests_.back()); }
    }
    /// Waits until at most `most` operations are outstanding; progresses all of them.
    void wait(size_t most) {
        const auto under_way = [&] {
            return static_cast<size_t>(
                std::count_if(requests_.begin(), requests_.end(), [](auto& each) { return !each->done; }));
        };
        while (under_way() > most) {
            size_t which = 0;
            const bool here = Machine::current->wait([&] {
                for (which = 0; which < awaited_.size(); ++which)
                    if (awaited_[which].ready()) return true;
                return false;
            });
            if (!here) which = 0;
            const Awaited next = awaited_[which];
            awaited_.erase(awaited_.begin() + static_cast<std::ptrdiff_t>(which));
            *next.here = here;
            next.waiter.resume();
            starling::progress::run_ready();
        }
    }
    /// Waits for all outstanding operations, and counts their errors.
    void wait() {
        wait(0);
        for (auto& each : requests_) count(each->outcome.error);
        requests_.clear();
    }
    int errors() const { return errors_; }
    int last_error() const { return last_error_; }

  private:
    void count(int error) {
        if (error == MPI_SUCCESS) return;
        ++errors_;
        last_error_ = error;
    }
    std::vector<Awaited> awaited_;
    Stage stage_;
    OperationQueue turns_;
    std::vector<std::unique_ptr<CollectiveRequest>> requests_;
    int errors_ = 0, last_error_ = MPI_SUCCESS;
};

/// An operation that runs a check when it has succeeded.
template <class Operation>
struct Meeting : Operation {
    std::function<void()> all_came;
    int take(auto& stage) {
        const int error = Operation::take(stage);
        if (error == MPI_SUCCESS) all_came();
        return error;
    }
};

/// Two words, so that a torn read shows.
struct Data {
    static uint32_t program;  ///< number of the current program; data of earlier ones, left in memory, is wrong
    uint32_t first, second;
    static Data of(int participant, int operation) {
        const auto value = program * 10000 + static_cast<uint32_t>(participant * 1000 + operation + 1);
        return {value, ~value};
    }
    void write(std::byte* to) const {
        auto* words = reinterpret_cast<uint32_t*>(to);
        words[0] = first;
        Machine::current->point();
        words[1] = second;
    }
    static Data read(const std::byte* from) {
        const auto* words = reinterpret_cast<const uint32_t*>(from);
        Data data;
        data.first = words[0];
        Machine::current->point();
        data.second = words[1];
        return data;
    }
    bool operator==(const Data&) const = default;
};
uint32_t Data::program = 0;

/// Returns an area of which only the parts that a new owner relies on are initialized. Clearing all of it would take longer than the test.
std::byte* fresh_area(int n, Driver driver, uint32_t first) {
    static std::map<int, std::vector<std::byte>> areas;
    std::vector<std::byte>& memory = areas[n];
    if (memory.empty()) memory.resize(NodeLayout::bytes(n) + 64);
    std::byte* const base = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    NodeLayout(base, n).clear(first);
    if (driver == Driver::lanes) LaneLayout(base, n).clear(first);
    return base;
}

/// The data of an operation: two words per participant. The callable `Read` checks the received data.
template <class Read>
struct Words {
    Data mine;
    Read look;
    static uint32_t bytes() { return sizeof(Data); }
    static uint32_t bytes(int) { return sizeof(Data); }
    static uint32_t room_bytes() { return sizeof(Data); }
    static void copy_own() {}
    static bool more() { return false; }
    static bool next(int) { return false; }
    void write(ModelSync&, std::byte* room) const { mine.write(room); }
    template <class From>
    int read(From from) const {
        look(from);
        return MPI_SUCCESS;
    }
};
template <class Read>
Words(Data, Read) -> Words<Read>;

template <class Read, class Add>
struct Summed : Words<Read> {
    Add add;
    template <class Slot>
    int combine(ModelSync&, Slot slot, std::byte* result) const {
        add(slot).write(result);
        return MPI_SUCCESS;
    }
};

/// A neighborhood operation: writes two words for some neighbors, and checks the words of others.
template <class Read>
struct Letters {
    Data mine;
    std::vector<starling::comm::NeighborEdge> to, from;
    bool is_mutual;
    Read look;
    const auto& writes_for() const { return to; }
    const auto& reads_from() const { return from; }
    bool mutual() const { return is_mutual; }
    /// Skips the first neighbor in every fifth operation, so that this neighbor may be far ahead.
    bool looks_for(auto& stage, const starling::comm::NeighborEdge& edge) const {
        return stage.sequence() % 5 != 3 || edge.block != 0;
    }
    static uint32_t kind() { return 7; }
    static uint32_t bytes() { return sizeof(Data); }
    static std::byte* find_room(auto& stage) { return NodeLayout::payload(stage.own_slot(), bytes()); }
    void write(ModelSync&, std::byte* room) const { mine.write(room); }
    int read(auto& stage) const {
        for (const auto& each : from)
            if (looks_for(stage, each)) look(each.rank, stage.payload_of(each.rank, bytes()));
        return MPI_SUCCESS;
    }
};

enum Operation {
    kBarrier,
    kBcastFirst,
    kBcastLast,
    kBcastWide,
    kToRoot,
    kToRootWide,
    kToAll,
    kToAllWide,
    kCombine,
    kRing,
    kChain,
    kSkip,
    kOperations
};

/// Returns the sequence number of a program's first operation. In every second program it is so large that the numbers wrap around soon.
uint32_t first_of(const std::vector<Operation>& operations) {
    uint32_t sum = 0;
    for (const Operation each : operations) sum = sum * 3 + each;
    return sum % 2 ? 0u - 1 - sum / 2 % 8 : 0;
}

struct Program {
    Machine& machine;
    int n, few, dead;
    Driver driver;
    size_t outstanding;  ///< number of operations that each participant has outstanding
    std::vector<Operation> operations;
    const uint32_t first;
    std::byte* const base;
    Places places;
    std::vector<int> entered;   ///< number of operations that each participant has begun
    std::vector<int> failures;  ///< number of failed operations per participant
    std::string wrong;

    Program(Machine& m, int few_limit, Driver d, std::vector<Operation> list, int dead_participant = -1)
        : machine(m),
          n(m.size()),
          few(few_limit),
          dead(dead_participant),
          driver(d),
          outstanding(d == Driver::lanes ? list.size() % 4 + list.size() / 8 + 1 : 1),
          operations(std::move(list)),
          first(first_of(operations)),
          base(fresh_area(m.size(), d, first)),
          places{std::vector<std::array<Places::Place, Places::kMost>>(static_cast<size_t>(n)),
                 1 + static_cast<int>(operations.size() % Places::kMost)},
          entered(static_cast<size_t>(n)),
          failures(static_cast<size_t>(n)) {
        ++Data::program;
    }

    bool run() {
        return machine.run([this](int me) { participant(me); }, dead);
    }
    void expect(bool condition, int me, int at, const char* what) {
        if (!condition && wrong.empty())
            wrong = "participant " + std::to_string(me) + ", operation " + std::to_string(at) + ": " + what;
    }

    void participant(int me) {
        Member member(base, n, me, &places, first, few);
        for (int at = 0; at < static_cast<int>(operations.size()); ++at) {
            ++entered[static_cast<size_t>(me)];
            one(member, me, at);
            if (driver != Driver::blocking) member.wait(outstanding - 1);
        }
        member.wait();
        failures[static_cast<size_t>(me)] = member.errors();
        expect(member.errors() == 0 || dead >= 0, me, static_cast<int>(operations.size()), "an error");
    }
    void one(Member& member, int me, int at) {
        const Data mine = Data::of(me, at);
        const std::function<void()> all_entered = [=, this] {
            for (int i = 0; i < n; ++i)
                expect(entered[static_cast<size_t>(i)] > at || i == dead, me, at, "a meeting ended without all");
        };
        const auto from_root = [&](int root) {
            return
                [=, this](const std::byte* payload) { expect(Data::read(payload) == Data::of(root, at), me, at, "broadcast"); };
        };
        const auto from_all = [=, this](auto slot) {
            for (int i = 0; i < n; ++i) expect(Data::read(slot(i)) == Data::of(i, at), me, at, "data of all");
        };
        const auto from_others = [=, this](auto slot) {  // the root
            for (int i = 0; i + 1 < n; ++i) expect(Data::read(slot(i)) == Data::of(i, at), me, at, "data of the others");
        };
        const auto from_neighbor = [=, this](int i, const std::byte* letter) {
            expect(Data::read(letter) == Data::of(i, at), me, at, "a neighbour's data");
        };
        using namespace protocol;
        switch (operations[static_cast<size_t>(at)]) {
            case kBarrier:
                return member.call(driver, Meeting<Barrier>{{}, all_entered});
            case kBcastFirst:
                return member.call(driver, FromRoot<Words<decltype(from_root(0))>>{{mine, from_root(0)}, 1, 0, true});
            case kBcastLast:
                return member.call(driver, FromRoot<Words<decltype(from_root(0))>>{{mine, from_root(n - 1)}, 1, n - 1, true});
            case kBcastWide:
                return member.call(driver,
                                   FromRoot<Words<decltype(from_root(0))>, true>{{mine, from_root(n - 1)}, 6, n - 1, true});
            case kToRoot:
                return member.call(driver, ToRoot<Words<decltype(from_all)>>{{mine, from_all}, 2, 0, 0, n});
            case kToRootWide:
                return member.call(driver, ToRoot<Words<decltype(from_others)>, true>{{mine, from_others}, 8, n - 1, 0, n});
            case kToAll:
                return member.call(driver, Meeting<ToAll<Words<decltype(from_all)>>>{{{mine, from_all}, 3}, all_entered});
            case kToAllWide:
                return member.call(driver, Meeting<ToAll<Words<decltype(from_all)>, true>>{{{mine, from_all}, 5}, all_entered});
            case kCombine: {
                const auto add = [=, this](auto slot) {
                    uint32_t sum = 0;
                    for (int i = 0; i < n; ++i) {
                        const Data operand = Data::read(slot(i));
                        expect(operand == Data::of(i, at), me, at, "operand");
                        sum += operand.first;
                    }
                    return Data{sum, ~sum};
                };
                const auto look = [=, this](const std::byte* result) {
                    uint32_t sum = 0;
                    for (int i = 0; i < n; ++i) sum += Data::of(i, at).first;
                    expect(Data::read(result) == Data{sum, ~sum}, me, at, "combined data");
                };
                return member.call(driver, CombineProtocol<Summed<decltype(look), decltype(add)>>{{{mine, look}, add}, 4});
            }
            case kRing: {
                const int before = (me + n - 1) % n, behind = (me + 1) % n;
                const std::vector<starling::comm::NeighborEdge> both = {{before, 0}, {behind, 1}};
                return member.call(driver, ToSome<Letters<decltype(from_neighbor)>>{{mine, both, both, true, from_neighbor}});
            }
            case kChain: {
                std::vector<starling::comm::NeighborEdge> to, from;
                if (me + 1 < n) to.push_back({me + 1, 0});
                if (me > 0) from.push_back({me - 1, 0});
                return member.call(driver, ToSome<Letters<decltype(from_neighbor)>>{{mine, to, from, false, from_neighbor}});
            }
            default:
                return member.call(driver, Skip{});
        }
    }
};

std::string names(const std::vector<Operation>& operations) {
    static const char* const kNames[] = {"barrier", "bcast-first", "bcast-last", "bcast-wide", "to-root", "to-root-wide",
                                         "to-all",  "to-all-wide", "combine",    "ring",       "chain",   "skip"};
    std::string text;
    for (const Operation operation : operations) text.append(kNames[operation]).append(" ");
    return text;
}

/// Tries all schedules with at most `preemptions` preemptions, or the first `limit` of them.
void explore(int n, int few, Driver driver, const std::vector<Operation>& operations, int preemptions, int limit) {
    // Operations that no lane supports run in turn; their mix with lanes is tested at random.
    const auto in_turn = [](Operation each) {
        return each == kBcastWide || each == kToRootWide || each >= kRing || each == kToAllWide;
    };
    if (driver == Driver::lanes && std::any_of(operations.begin(), operations.end(), in_turn)) return;
    if (driver != Driver::blocking) limit /= 4;  // the blocking driver runs the same phases and explores more schedules
    Scheduler scheduler(preemptions);
    int runs = 0;
    do {
        Machine machine(scheduler, n);
        Program run(machine, few, driver, operations);
        ASSERT_TRUE(run.run()) << "deadlock: " << names(operations) << "with " << n << ", few " << few;
        ASSERT_EQ(run.wrong, "") << names(operations) << "with " << n << ", few " << few;
    } while (scheduler.next() && ++runs < limit / kFewer);
    EXPECT_GE(runs, std::min(n, limit / kFewer));
}

/// Reduces the limit for triples with neighbor operations: there are many, and these operations do little.
int fewer(int limit, int a, int b, int c) {
    const auto of_neighbors = [](int each) { return each == kRing || each == kChain; };
    return of_neighbors(a) || of_neighbors(b) || of_neighbors(c) ? limit / 4 : limit;
}

constexpr Driver kDrivers[] = {Driver::blocking, Driver::awaited, Driver::lanes};

// few = 4: every participant polls all others. few = 0: arrivals are counted.
TEST(SharedMemoryStage, ThreeOperationsOfTwoParticipantsInAllInterleavings) {
    for (const Driver driver : kDrivers)
        for (int few : {0, 4})
            for (int a = 0; a < kOperations; ++a)
                for (int b = 0; b < kOperations; ++b)
                    for (int c = 0; c < kOperations; ++c) {
                        explore(2, few, driver, {Operation(a), Operation(b), Operation(c)}, 2, fewer(400, a, b, c));
                        if (testing::Test::HasFailure()) return;
                    }
}

TEST(SharedMemoryStage, ThreeOperationsOfThreeParticipantsInManyInterleavings) {
    for (const Driver driver : kDrivers)
        for (int few : {0, 4})
            for (int a = 0; a < kOperations; ++a)
                for (int b = 0; b < kOperations; ++b)
                    for (int c = 0; c < kOperations; ++c) {
                        explore(3, few, driver, {Operation(a), Operation(b), Operation(c)}, 1, fewer(60, a, b, c));
                        if (testing::Test::HasFailure()) return;
                    }
}

TEST(SharedMemoryStage, RepeatedOperationsWithMorePreemptions) {
    for (const Driver driver : kDrivers)
        for (int few : {0, 4})
            for (int a = 0; a < kOperations; ++a) {
                explore(2, few, driver, std::vector<Operation>(3, Operation(a)), 3, 4000);
                explore(3, few, driver, std::vector<Operation>(3, Operation(a)), 2, 2000);
                if (testing::Test::HasFailure()) return;
            }
}

// A participant that need not wait for the others runs ahead of them until the ring buffers are used up.
TEST(SharedMemoryStage, RingBuffersWrapAround) {
    for (const Driver driver : kDrivers)
        for (int few : {0, 4})
            for (int n : {2, 3})
                for (int a = 0; a < kOperations; ++a) {
                    explore(n, few, driver, std::vector<Operation>(2 * NodeLayout::kRingBuffers + 3, Operation(a)), 1, 400);
                    if (testing::Test::HasFailure()) return;
                }
}

TEST(SharedMemoryStage, LongSequencesAtRandom) {
    for (uint64_t seed = 0; seed < 600; ++seed) {
        std::mt19937_64 random(seed);
        Scheduler scheduler(seed);
        const int n = 2 + static_cast<int>(random() % 5);
        std::vector<Operation> operations(40);
        // Some sequences have only one kind of operation: these wrap around the buffers soonest.
        const auto kinds = 1 + random() % kOperations;
        for (auto& operation : operations) operation = Operation((seed + random() % kinds) % kOperations);
        Machine machine(scheduler, n);
        Program run(machine, random() % 2 ? 4 : 0, kDrivers[random() % 3], operations);
        ASSERT_TRUE(run.run()) << "deadlock, seed " << seed << ": " << names(operations);
        ASSERT_EQ(run.wrong, "") << "seed " << seed << ": " << names(operations);
    }
}

// With more operations outstanding than lanes, a participant waits until all have finished a lane's last operation, and is woken then.
TEST(SharedMemoryStage, LanesAreReusedWithManyOutstandingOperations) {
    constexpr Operation kHeld[] = {kBarrier, kBcastFirst, kBcastLast, kToRoot, kToAll, kCombine};
    for (uint64_t seed = 0; seed < 200 / kFewer; ++seed) {
        std::mt19937_64 random(seed);
        Scheduler scheduler(seed);
        const int n = 2 + static_cast<int>(random() % 4);
        std::vector<Operation> operations(LaneLayout::kLanes * (1 + random() % 3) + random() % 10);
        const auto kinds = 1 + random() % std::size(kHeld);
        for (auto& operation : operations) operation = kHeld[(seed + random() % kinds) % std::size(kHeld)];
        Machine machine(scheduler, n);
        Program run(machine, random() % 2 ? 4 : 0, Driver::lanes, operations);
        run.outstanding = 1 + random() % (2 * LaneLayout::kLanes);
        ASSERT_TRUE(run.run()) << "deadlock, seed " << seed << ": " << names(operations);
        ASSERT_EQ(run.wrong, "") << "seed " << seed << ": " << names(operations);
    }
}

/// Age of a sequence number at which comparisons with it become wrong.
constexpr uint32_t kOld = 1u << 31;

// A participant that only receives broadcasts writes neither its slots nor its release word, so both may hold old numbers.
TEST(SharedMemoryStage, ABarrierOfLongAgoIsNotTakenForThisOneAfterWraparound) {
    constexpr uint32_t kFirst = 1000;
    std::byte* const base = fresh_area(2, Driver::blocking, kFirst);
    NodeLayout(base, 2).release(0).store(kFirst - kOld + 10);
    Scheduler scheduler(1);
    Machine machine(scheduler, 2);
    Places places{std::vector<std::array<Places::Place, Places::kMost>>(2)};
    int errors = 0;
    const auto meet = [&](int me) {
        Member member(base, 2, me, &places, kFirst, 0);
        member.call(Driver::blocking, protocol::Barrier{});
        errors = member.errors();
    };
    ASSERT_TRUE(machine.run(meet, 1));
    EXPECT_EQ(errors, 1) << "participant 1 is missing";
}

TEST(SharedMemoryStage, UnwrittenSlotsAreRenewedBeforeSequenceNumbersWrap) {
    constexpr uint32_t kFirst = kRenewEvery - 5, kLongAgo = kFirst - kOld / 2;
    for (const Driver driver : {Driver::blocking, Driver::lanes}) {
        std::byte* const base = fresh_area(3, driver, kFirst);
        const NodeLayout stage(base, 3);
        const LaneLayout lanes(base, 3);
        const auto word = [&](int i, uint32_t use) -> std::atomic<uint32_t>& {
            return driver == Driver::lanes ? lanes.slot(i, use).sequence : stage.slot(i, use).sequence;
        };
        const uint32_t uses = driver == Driver::lanes ? LaneLayout::kLanes : NodeLayout::slot_turns(3);
        for (int i = 0; i < 3; ++i)
            for (uint32_t use = 0; use < uses; ++use) word(i, use).store(kLongAgo);
        Scheduler scheduler(1);
        Machine machine(scheduler, 3);
        Places places{std::vector<std::array<Places::Place, Places::kMost>>(3)};
        int errors = 0;
        const auto read = [&](int me) {
            Member member(base, 3, me, &places, kFirst, NodeLayout::kFew);
            const auto look = [](const std::byte*) {};
            const Words words{Data::of(me, 0), look};
            for (int i = 0; i < 20; ++i)
                member.call(driver, protocol::FromRoot<Words<std::remove_const_t<decltype(look)>>>{words, 1, 0, true});
            member.wait();
            errors += member.errors();
        };
        ASSERT_TRUE(machine.run(read));
        EXPECT_EQ(errors, 0);
        for (int i = 0; i < 3; ++i)
            for (uint32_t use = 0; use < uses; ++use) EXPECT_LT(kFirst + 20 - word(i, use).load(), 100u) << i << ", " << use;
    }
}

TEST(SharedMemoryStage, ADeadParticipantEndsTheWaitsOfAllOthers) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
        std::mt19937_64 random(seed);
        Scheduler scheduler(seed);
        const int n = 2 + static_cast<int>(random() % 4);
        const int dead = static_cast<int>(random() % static_cast<uint64_t>(n));
        Machine machine(scheduler, n);
        Program run(machine, random() % 2 ? 4 : 0, kDrivers[seed % 3], {kBcastFirst, kToAllWide, kBcastWide, kToAll, kBarrier},
                    dead);
        ASSERT_TRUE(run.run()) << "seed " << seed;
        for (int i = 0; i < n; ++i) EXPECT_TRUE(i == dead || run.failures[static_cast<size_t>(i)] >= 4) << "seed " << seed;
    }
}

/// A message without data, of a given size.
struct SizeOnly {
    uint32_t size;
    uint32_t bytes(int) const { return size; }
    uint32_t room_bytes() const { return size; }
    static void write(ModelSync&, std::byte*) {}
    template <class Slot>
    static int read(Slot) {
        return MPI_SUCCESS;
    }
    static bool next(int) { return false; }
};

TEST(SharedMemoryStage, MembersThatDisagreeOnTheSizeGetAnError) {
    for (const Driver driver : kDrivers) {
        Scheduler scheduler(uint64_t{1});
        Machine machine(scheduler, 2);
        std::byte* const base = fresh_area(2, driver, 0);
        Places places{std::vector<std::array<Places::Place, Places::kMost>>(2)};
        std::array<int, 2> errors{};
        const std::function<void(int)> body = [&](int me) {
            Member member(base, 2, me, &places, 0, 4);
            member.call(driver, protocol::ToAll<SizeOnly>{{me == 0 ? 8u : 16u}, 1});
            member.wait();
            errors[static_cast<size_t>(me)] = member.last_error();
        };
        ASSERT_TRUE(machine.run(body));
        EXPECT_EQ(errors[0], MPI_ERR_TRUNCATE);
        EXPECT_EQ(errors[1], MPI_ERR_TRUNCATE);
    }
}

}  // namespace
