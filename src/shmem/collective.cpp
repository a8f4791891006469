// Collectives over teams: they run the collectives of src/collective on the team's communicator.
#include "collective/collective.h"

#include <cstring>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/kept_memory.h"
#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "collective/communicator/creation.h"
#include "profile/collectives.h"
#include "shmem/access.h"
#include "shmem/collective.h"
#include "shmem/elements.h"
#include "shmem/entry.h"

namespace starling::shmem {

namespace {

using collective::Blocks;
using collective::byte_type;
using collective::CommCall;

/// Converts an MPI error class into the function's result, and prints the error's text with STARLING_VERBOSE=1.
int ended(int error) {
    if (error) mention("%.*s", static_cast<int>(failure_text().size()), failure_text().data());
    clear_failure();
    return error;
}

/// Checks that a buffer is in allocated symmetric memory, if STARLING_CHECK is set.
void check_symmetric(const char* what, const void* address, uint64_t bytes) {
    if (config().check && bytes > 0) located(what, address, bytes);
}

int64_t total_of(const std::vector<int64_t>& counts) {
    int64_t sum = 0;
    for (const int64_t count : counts) sum += count;
    return sum;
}

void gather_strided(std::byte* out, const std::byte* in, ptrdiff_t stride, size_t count, size_t size) {
    for (size_t i = 0; i < count; ++i) std::memcpy(out + i * size, in + static_cast<ptrdiff_t>(i * size) * stride, size);
}

void scatter_strided(std::byte* out, const std::byte* in, ptrdiff_t stride, size_t count, size_t size) {
    for (size_t i = 0; i < count; ++i) std::memcpy(out + static_cast<ptrdiff_t>(i * size) * stride, in + i * size, size);
}

/// The checked arguments of a reduction or a scan.
struct Combining {
    Combining(void* handle, void* dest, const void* source, size_t elements, Element element)
        : team(team_of(handle)),
          type(type_of(element)),
          count(static_cast<int64_t>(elements)),
          from(source == dest ? MPI_IN_PLACE : source) {
        check_alike(team, "the number of elements", static_cast<int64_t>(elements));
        check_symmetric("dest", dest, elements * static_cast<uint64_t>(type.size));
        check_symmetric("source", source, elements * static_cast<uint64_t>(type.size));
    }
    Team& team;
    const datatype::Datatype& type;
    const int64_t count;
    const void* const from;
};

/// Runs the body of a function that all members of a team call; the profile counts the call. The other members wait for this one, even if
/// it is out of memory.
template <class F>
int collectively(Caller caller, F body) {
    const auto inside = [&] {
        const ShmemCall call(caller.name);
        const KeptMemory::Use use;
        return body();
    };
    return profile::watching ? profile::run_watched(caller.site, inside) : inside();
}

/// Returns a CommCall on the team's communicator, for an operation that the profile does not count. Refills the memory reserve.
CommCall inner_call_of(Team& team) {
    KeptMemory::refill();
    return CommCall(*team.comm, true);
}

/// Returns a CommCall on the team's communicator, for arguments that were checked.
CommCall call_of(Team& team) {
    if (profile::watching) [[unlikely]]
        profile::begin_watched(team.comm->context(), static_cast<uint32_t>(team.size()));
    return inner_call_of(team);
}

}  // namespace

int barrier(Team& team) {
    CommCall call = call_of(team);
    return collective::run(call, collective::barrier(call));
}

bool all_agree(Team& team, bool mine) {
    int32_t yes = mine, all = 0;
    CommCall call = inner_call_of(team);
    const auto& type = datatype::predefined(MPI_INT32_T);
    if (collective::run(call, collective::allreduce(call, &yes, &all, 1, type, datatype::predefined(MPI_MIN))))
        complain_of_failure();
    return all != 0;
}

void check_alike(Team& team, const char* what, int64_t value) {
    if (!config().check) return;
    const int64_t mine[2] = {value, ~value};
    int64_t most[2];
    CommCall call = inner_call_of(team);
    const auto& type = datatype::predefined(MPI_INT64_T);
    if (collective::run(call, collective::allreduce(call, mine, most, 2, type, datatype::predefined(MPI_MAX))))
        complain_of_failure();
    if (most[0] != ~most[1])
        complain("%s is not the same on all PEs: %lld here, and from %lld to %lld", what, static_cast<long long>(value),
                 static_cast<long long>(~most[1]), static_cast<long long>(most[0]));
}

void check_alike_everywhere(const char* what, uint64_t value) {
    check_alike(*world().everyone, what, static_cast<int64_t>(value));
}

extern "C" {

int starling_shmem_sync(Caller caller, void* handle, bool with_quiet) {
    return collectively(caller, [&] {
        Team* team = team_or_null(handle);
        if (!team) return -1;
        if (with_quiet)
            quiet(default_context());
        else
            wake_stored();
        return ended(barrier(*team));
    });
}

int starling_shmem_broadcast(Caller caller, void* handle, void* dest, const void* source, size_t bytes, int root,
                             bool to_root) {
    return collectively(caller, [&] {
        Team& team = team_of(handle);
        if (root < 0 || root >= team.size()) complain("the root, PE %d, is not in a team of %d PEs", root, team.size());
        check_alike(team, "the number of bytes", static_cast<int64_t>(bytes));
        check_alike(team, "the root", root);
        check_symmetric("dest", dest, bytes);
        check_symmetric("source", source, bytes);
        const bool is_root = team.rank() == root;
        CommCall its = call_of(team);
        void* buffer = is_root ? const_cast<void*>(source) : dest;
        const int error = collective::run(its, collective::bcast(its, buffer, static_cast<int64_t>(bytes), byte_type(), root));
        if (is_root && to_root && dest != source && bytes > 0) std::memcpy(dest, source, bytes);
        return ended(error);
    });
}

int starling_shmem_collect(Caller caller, void* handle, void* dest, const void* source, size_t bytes) {
    return collectively(caller, [&] {
        Team& team = team_of(handle);
        const auto n = static_cast<size_t>(team.size());
        std::vector<int64_t> counts(n), begins(n);
        const auto mine = static_cast<int64_t>(bytes);
        const auto& word = datatype::predefined(MPI_INT64_T);
        CommCall first = call_of(team);
        if (const int error =
                collective::run(first, collective::allgather(first, &mine, 1, word, Blocks(counts.data(), 1, word))))
            return ended(error);
        for (size_t i = 1; i < n; ++i) begins[i] = begins[i - 1] + counts[i - 1];
        check_symmetric("dest", dest, static_cast<uint64_t>(total_of(counts)));
        check_symmetric("source", source, bytes);
        CommCall second = inner_call_of(team);
        const Blocks blocks(dest, Counts(counts.data()), Counts(begins.data()), byte_type());
        return ended(collective::run(second, collective::allgather(second, source, mine, byte_type(), blocks)));
    });
}

int starling_shmem_fcollect(Caller caller, void* handle, void* dest, const void* source, size_t bytes) {
    return collectively(caller, [&] {
        Team& team = team_of(handle);
        check_alike(team, "the number of bytes", static_cast<int64_t>(bytes));
        check_symmetric("dest", dest, bytes * static_cast<size_t>(team.size()));
        check_symmetric("source", source, bytes);
        CommCall its = call_of(team);
        const auto count = static_cast<int64_t>(bytes);
        return ended(
            collective::run(its, collective::allgather(its, source, count, byte_type(), Blocks(dest, count, byte_type()))));
    });
}

int starling_shmem_alltoall(Caller caller, void* handle, void* dest, const void* source, size_t bytes) {
    return collectively(caller, [&] {
        Team& team = team_of(handle);
        check_alike(team, "the number of bytes", static_cast<int64_t>(bytes));
        check_symmetric("dest", dest, bytes * static_cast<size_t>(team.size()));
        check_symmetric("source", source, bytes * static_cast<size_t>(team.size()));
        CommCall its = call_of(team);
        const auto count = static_cast<int64_t>(bytes);
        const Blocks send(source, count, byte_type()), receive(dest, count, byte_type());
        return ended(collective::run(its, collective::alltoall(its, false, send, receive)));
    });
}

int starling_shmem_alltoalls(Caller caller, void* handle, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                             size_t count, size_t size) {
    return collectively(caller, [&] {
        Team& team = team_of(handle);
        if (dst < 1 || sst < 1) complain("the strides %td and %td must be positive", dst, sst);
        check_alike(team, "the number of elements", static_cast<int64_t>(count));
        const size_t all = count * static_cast<size_t>(team.size()), bytes = count * size;
        if (all == 0) return 0;
        check_symmetric("dest", dest, ((all - 1) * static_cast<size_t>(dst) + 1) * size);
        check_symmetric("source", source, ((all - 1) * static_cast<size_t>(sst) + 1) * size);
        std::vector<std::byte> out(all * size), in(all * size);
        gather_strided(out.data(), static_cast<const std::byte*>(source), sst, all, size);
        CommCall its = call_of(team);
        const Blocks send(out.data(), static_cast<int64_t>(bytes), byte_type()),
            receive(in.data(), static_cast<int64_t>(bytes), byte_type());
        const int error = collective::run(its, collective::alltoall(its, false, send, receive));
        if (!error) scatter_strided(static_cast<std::byte*>(dest), in.data(), dst, all, size);
        return ended(error);
    });
}

int starling_shmem_reduce(Caller caller, void* handle, void* dest, const void* source, size_t count, Element element,
                          Operator op) {
    return collectively(caller, [&] {
        const Combining all(handle, dest, source, count, element);
        CommCall its = call_of(all.team);
        return ended(collective::run(its, collective::allreduce(its, all.from, dest, all.count, all.type, op_of(op))));
    });
}

int starling_shmem_scan(Caller caller, void* handle, void* dest, const void* source, size_t count, Element element,
                        bool exclusive) {
    return collectively(caller, [&] {
        const Combining all(handle, dest, source, count, element);
        CommCall its = call_of(all.team);
        const int error =
            collective::run(its, collective::scan(its, all.from, dest, all.count, all.type, op_of(Operator::sum), exclusive));
        // Rank 0 of an exclusive scan gets 0, the sum of no elements.
        if (!error && exclusive && all.team.rank() == 0 && count > 0)
            std::memset(dest, 0, count * static_cast<size_t>(all.type.extent));
        return ended(error);
    });
}

int starling_shmem_team_from_comm(const char* name, void* handle, void** made) {
    const ShmemCall call(name);
    *made = nullptr;
    comm::Comm* comm = comm::from_handle(static_cast<MPI_Comm>(handle));
    if (!comm || comm->is_inter) return -1;
    comm::Comm* own = nullptr;
    if (const int error = collective::run(collective::duplicate(*comm, own))) return ended(error);
    own->set_errhandler(comm::errors_return());
    *made = make_team(own);
    return 0;
}

int starling_shmem_comm_from_team(const char* name, void* handle, void** made) {
    const ShmemCall call(name);
    *made = reinterpret_cast<void*>(MPI_COMM_NULL);
    comm::Comm* own = nullptr;
    if (const int error = collective::run(collective::duplicate(*team_of(handle).comm, own))) return ended(error);
    own->set_errhandler(comm::errors_are_fatal());
    *made = reinterpret_cast<void*>(comm::to_handle(own));
    return 0;
}
}  // extern "C"

}  // namespace starling::shmem
