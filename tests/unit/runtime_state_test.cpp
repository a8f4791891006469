// A process's state as one object (base/state.h): a process may start again in the same memory, and two may take turns in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/state.h"
#include "comm/comm.h"
#include "comm/error_codes.h"
#include "datatype/construct.h"
#include "datatype/datatype.h"
#include "link/peer.h"
#include "mpi.h"
#include "runtime/runtime.h"

namespace starling {
namespace {

using Image = std::vector<std::byte>;

Image take() { return {runtime_state().begin(), runtime_state().end()}; }
void put(const Image& image) { std::ranges::copy(image, runtime_state().begin()); }

/// The library's state before any of its functions ran.
const Image pristine = take();

/// Starts a simulated process: resets the library's state and initializes MPI.
void begin() {
    put(pristine);
    ASSERT_EQ(runtime::phase, runtime::LibraryPhase::before);
    ASSERT_EQ(link::self().job, nullptr);
    ASSERT_EQ(runtime::acquire(MPI_THREAD_SINGLE), MPI_SUCCESS) << failure_text();
    ASSERT_EQ(runtime::phase, runtime::LibraryPhase::running);
}

datatype::Datatype* make_triple() {
    datatype::Datatype* made = nullptr;
    EXPECT_EQ(datatype::make(MPI_COMBINER_CONTIGUOUS, false, {3}, {&datatype::predefined(MPI_INT)}, &made), MPI_SUCCESS);
    return made;
}

class State : public testing::Test {
  protected:
    void SetUp() override {
        setenv("STARLING_CONFIG", "none", 1);
        setenv("STARLING_PMI", "none", 1);
    }
    void TearDown() override { put(pristine); }
};

TEST_F(State, HoldsTheStateOfAllRooms) {
    const auto lies_in_it = [](const auto& object) {
        const auto* at = reinterpret_cast<const std::byte*>(&object);
        return at >= runtime_state().data() && at + sizeof object <= runtime_state().data() + runtime_state().size();
    };
    EXPECT_TRUE(lies_in_it(counters));
    EXPECT_TRUE(lies_in_it(config()));
    EXPECT_TRUE(lies_in_it(link::self()));
    EXPECT_TRUE(lies_in_it(datatype::predefined_types));
    EXPECT_TRUE(lies_in_it(runtime::phase));
}

TEST_F(State, AProcessStartsAgain) {
    begin();
    runtime::release(true);
    EXPECT_EQ(runtime::phase, runtime::LibraryPhase::finalized);
    EXPECT_EQ(runtime::acquire(MPI_THREAD_SINGLE), MPI_ERR_OTHER);  // fails, because MPI was finalized in this process
    begin();
    runtime::release(true);
}

TEST_F(State, TwoProcessesTakeTurns) {
    begin();
    const job::JobId first_job = link::self().job->address().id;
    const int first_class = comm::add_class();
    const int second_class = comm::add_class();
    ASSERT_EQ(set_variable("STARLING_EAGER_LIMIT", "1234", VariableSource::environment), MPI_SUCCESS) << failure_text();
    const uint64_t limit = config().eager_limit;
    datatype::Datatype* triple = make_triple();
    counters.yields = 41;
    const Image first = take();

    begin();
    EXPECT_NE(link::self().job->address().id, first_job);
    EXPECT_EQ(comm::add_class(), first_class);  // as before, because the other process has not changed this one's state
    EXPECT_NE(config().eager_limit, limit);
    EXPECT_LT(counters.yields, 41u);
    EXPECT_NE(make_triple(), triple);
    const Image second = take();

    put(first);
    EXPECT_EQ(link::self().job->address().id, first_job);
    EXPECT_EQ(comm::add_class(), second_class + 1);
    EXPECT_EQ(config().eager_limit, limit);
    EXPECT_EQ(counters.yields, 41u);
    release(*triple);
    EXPECT_EQ(make_triple(), triple);  // this process's pool assigns the freed slot again
    runtime::release(true);
    EXPECT_EQ(runtime::phase, runtime::LibraryPhase::finalized);

    put(second);
    EXPECT_EQ(runtime::phase, runtime::LibraryPhase::running);
    EXPECT_EQ(comm::add_class(), second_class);
    runtime::release(true);
}

}  // namespace
}  // namespace starling
