// Communicator objects without messages: context ids, handles, lifetimes.
#include "comm/comm.h"

#include <gtest/gtest.h>

#include <set>

#include "job/job_segment.h"

namespace starling::comm {
namespace {

class Comms : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        job::JobSegment segment;
        ASSERT_EQ(job::JobSegment::create(4, nullptr, 0, segment), MPI_SUCCESS);
        own = link::adopt_own_job(std::move(segment), 2);
        other = link::find_job({.id = 0x1234567890, .owner_pid = 4711, .owner_fd = 3});
    }
    static Group* run(link::Job* job, int first, int count) {
        GroupBuilder builder;
        builder.add(comm::GroupRun{job, first, 1, count});
        return builder.build();
    }
    static inline link::Job* own = nullptr;
    static inline link::Job* other = nullptr;
};

TEST_F(Comms, Predefined) {
    EXPECT_EQ(from_handle(MPI_COMM_WORLD), nullptr) << "MPI_COMM_WORLD has no object before MPI_Init";
    make_predefined();
    ASSERT_EQ(from_handle(MPI_COMM_WORLD), world());
    EXPECT_EQ(world()->size, 4);
    EXPECT_EQ(world()->rank, 2);
    EXPECT_EQ(self()->size, 1);
    EXPECT_EQ(self()->rank, 0);
    EXPECT_EQ(to_handle(world()), MPI_COMM_WORLD);
    EXPECT_EQ(to_handle(self()), MPI_COMM_SELF);
    EXPECT_EQ(from_handle(MPI_COMM_NULL), nullptr);
    EXPECT_EQ(from_handle(reinterpret_cast<MPI_Comm>(uintptr_t{0x104})), nullptr);
    EXPECT_NE(world()->context(), self()->context());
    drop_predefined();
    EXPECT_EQ(from_handle(MPI_COMM_WORLD), nullptr);
    EXPECT_EQ(live_communicators(), 0u);
}

TEST_F(Comms, ContextIdsDifferAndLeavePlanesFree) {
    std::set<uint64_t> seen{make_context(own->address().id, kWorldNumber), make_context(own->address().id, kSelfNumber)};
    for (int i = 0; i < 1000; ++i) {
        const uint64_t context = new_context();
        EXPECT_EQ(context & kPlaneMask, 0u);
        EXPECT_TRUE(seen.insert(context).second);
    }
}

// Context ids continue past 28 bits, and a job runs out of them before one could repeat.
TEST_F(Comms, ContextIdsEndWithAnErrorAndNeverRepeat) {
    std::atomic<uint64_t>& next = own->segment().header().next_context;
    const uint64_t before = next.load();
    std::set<uint64_t> seen{make_context(own->address().id, kWorldNumber)};
    for (const uint64_t from : {uint64_t{1} << 28, uint64_t{1} << 32, job::kContextsPerHost - 20}) {
        next.store(from);
        for (int i = 0; i < 20; ++i) {
            const uint64_t context = new_context();
            EXPECT_EQ(check_context(context), MPI_SUCCESS);
            EXPECT_EQ(context & kPlaneMask, 0u);
            EXPECT_TRUE(seen.insert(context).second);
        }
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(check_context(new_context()), MPI_ERR_OTHER);
    next.store(before);
}

TEST_F(Comms, PlanesOfOneCommunicator) {
    Comm* comm = make_intracomm(new_context(), run(own, 0, 4), 2, nullptr);
    EXPECT_EQ(comm->collective.context(), comm->context() | 1);
    EXPECT_EQ(&comm->channel(Plane::leaders), &comm->channel(Plane::leaders));
    EXPECT_EQ(comm->channel(Plane::leaders).context(), comm->context() | 3);
    drop(comm);
}

TEST_F(Comms, BothSidesOfAnInterCommunicatorNumberRanksAlike) {
    // This process's group is once the first and once the second group of the inter-communicator.
    Comm* first = make_intercomm(new_context(), run(own, 1, 3), 1, run(other, 0, 5), true, nullptr);
    EXPECT_TRUE(first->is_inter);
    EXPECT_EQ(first->size, 3);
    EXPECT_EQ(first->peer_count, 5);
    EXPECT_EQ(first->point_to_point.roster().size(), 5);
    EXPECT_EQ(first->point_to_point.my_rank(), 1);
    EXPECT_EQ(first->collective.my_rank(), 1);
    EXPECT_EQ(first->collective.roster().at(0), (link::Process{own, 1}));
    EXPECT_EQ(first->collective.roster().at(3), (link::Process{other, 0}));
    Comm* second = make_intercomm(new_context(), run(own, 1, 3), 1, run(other, 0, 5), false, nullptr);
    EXPECT_EQ(second->collective.my_rank(), 6);
    EXPECT_EQ(second->collective.roster().at(0), (link::Process{other, 0}));
    EXPECT_EQ(second->collective.roster().at(6), (link::Process{own, 2}));
    drop(first);
    drop(second);
}

TEST_F(Comms, PendingOperationsOutliveTheHandle) {
    Group* group = run(own, 0, 4);
    group->retain();
    Comm* comm = make_intracomm(new_context(), group, 2, errors_return());
    const MPI_Comm handle = to_handle(comm);
    EXPECT_EQ(from_handle(handle), comm);
    comm->retain();
    drop(comm);
    EXPECT_EQ(from_handle(handle), nullptr);
    EXPECT_EQ(comm->size, 4) << "an operation still uses it";
    EXPECT_EQ(group->references, 2u);
    comm->release();
    EXPECT_EQ(group->references, 1u);
    EXPECT_EQ(live_communicators(), 0u);
    group->release();
}

TEST_F(Comms, ErrorHandlersAreKeptWhileUsed) {
    Comm* comm = make_intracomm(new_context(), run(own, 0, 4), 2, nullptr);
    EXPECT_EQ(comm->errhandler, errors_are_fatal());
    Errhandler* handler = make_errhandler(HandlerKind::comm);
    comm->set_errhandler(handler);
    comm->set_errhandler(handler);
    EXPECT_EQ(handler->references, 2u);
    drop(comm);
    EXPECT_EQ(handler->references, 1u);
    handler->release();
}

}  // namespace
}  // namespace starling::comm
