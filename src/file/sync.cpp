// Stores a file on its device and renews the host's cache, once per host: processes of one host that have opened the same file share its
// pages and attributes.
#include <vector>

#include "base/error.h"
#include "collective/communicator/creation.h"
#include "file/file.h"
#include "file/gather.h"
#include "file/system_call.h"
#include "link/job.h"

namespace starling::file {

namespace {

/// What a member publishes about its open file.
struct SyncPlace {
    uint64_t device = 0, inode = 0;
    uint64_t for_host = 0;  ///< whether it syncs for its host, and how it caches the file; 0: only for itself
    bool operator==(const SyncPlace&) const = default;
};

/// Returns the lowest rank on the host of `rank` that syncs for it; `rank` itself if none does.
int leader_of(const comm::Group& group, const std::vector<SyncPlace>& places, int rank) {
    const SyncPlace& mine = places[static_cast<size_t>(rank)];
    for (int other = 0; mine.for_host && other < rank; ++other)
        if (places[static_cast<size_t>(other)] == mine && link::on_this_host(group.at(other))) return other;
    return rank;
}

/// Chooses the leaders on all members. Collective.
int choose_leaders(File& file) {
    SyncPlace mine{file.device, file.inode, 0};
    mine.for_host = system_call(
        [&] { return file.system->syncs_for_host() ? 1 + static_cast<uint64_t>(file.system->caching()) : uint64_t{0}; });
    std::vector<SyncPlace> places;
    const int failed = gather(file, mine, places);
    const collective::ErrorHere here(failed);
    const int leader = failed ? -1 : leader_of(file.comm->local_group(), places, file.comm->rank);
    int64_t follows = leader != file.comm->rank;
    const int error = agree_on(file, {}, here.or_else(MPI_SUCCESS), "synchronization of the file", &follows);
    if (error) return error;
    file.sync_leader = leader;
    file.sync_is_shared = follows != 0;
    return MPI_SUCCESS;
}

/// The synchronization as long as no member dies.
int sync_by_leaders(File& file, int error) {
    constexpr char kWhat[] = "synchronization of the file";
    if (file.sync_leader < 0 || file.sync_is_shared) {
        // A leader must find the data of all that it syncs for: they have finished their writes when they vote.
        if (const int failed = agree_on(file, {}, error, kWhat)) return failed;
        if (file.sync_leader < 0)
            if (const int failed = choose_leaders(file)) return failed;
    }
    if (!error && file.sync_leader == file.comm->rank)
        if (const int failed = system_call([&] { return file.system->sync(); }))
            error = fail_of(failed, "synchronize", file.name);
    return agree_on(file, {}, error, kWhat);
}

}  // namespace

int sync(File& file, int error) {
    const int result = sync_by_leaders(file, error);
    if (error || !is_death(result)) return result;
    // The process that should have stored this one's writes may have died, so each survivor stores the file.
    const collective::ErrorHere death(result);
    if (const int failed = system_call([&] { return file.system->sync(); })) return fail_of(failed, "synchronize", file.name);
    return death.or_else(MPI_SUCCESS);
}

}  // namespace starling::file
