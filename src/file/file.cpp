#include "file/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "collective/channel_exchange.h"
#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "collective/communicator/creation.h"
#include "comm/error_codes.h"
#include "file/file_table.h"
#include "file/locked_turn.h"
#include "file/shared_pointer.h"
#include "file/system_call.h"

namespace starling::file {

namespace {

STARLING_STATE NoDestroy<Pool<File>> file_pool_storage;
constinit auto& file_pool = file_pool_storage.value;
STARLING_STATE NoDestroy<std::vector<File*>> files_storage;
constinit auto& all_files = files_storage.value;

}  // namespace

File::File() = default;
File::~File() = default;

bool File::may_read() const { return amode & (MPI_MODE_RDONLY | MPI_MODE_RDWR); }
bool File::may_write() const { return amode & (MPI_MODE_WRONLY | MPI_MODE_RDWR); }

File* make_file() {
    all_files.reserve(all_files.size() + 1);
    File* const file = file_pool.create();
    all_files.push_back(file);
    file->view = bytes_view();
    file->errhandler = comm::retain_from(comm::file_handler);
    return file;
}

void destroy(File& file) {
    std::erase(all_files, &file);
    // After a failed MPI_File_open the file may still be open here, and close(2) may take long.
    if (file.system) {
        const std::unique_ptr<OpenFile> open = std::move(file.system);
        system_call([&open] { return open->close(); });
    }
    file.view.release();
    file.errhandler->release();
    comm::Comm* const comm = file.comm;
    file_pool.destroy(&file);
    if (comm) comm::drop(comm);
}

File* file_at(uint32_t pool_index) { return file_pool.at(pool_index); }

File* file_of(uint64_t context) {
    for (File* file : all_files)
        if (file->comm && file->comm->context() == context) return file;
    return nullptr;
}

namespace {

/// The numbers of one member in an agreement. MPI_MAX selects the lowest rank that has an error, and finds values that differ: the largest
/// value and the complement of the smallest.
std::vector<int64_t> make_vote(const File& file, std::span<const int64_t> values, int error, int64_t largest) {
    const int64_t rank = file.comm->rank, size = file.comm->size;
    std::vector<int64_t> vote{error ? (size - rank) << 32 | error : 0, largest};
    for (const int64_t value : values) {
        vote.push_back(value);
        vote.push_back(~value);
    }
    return vote;
}

}  // namespace

int agree_on(File& file, std::span<const int64_t> values, int error, const char* what, int64_t* largest) {
    const collective::ErrorHere mine(error);
    const std::vector<int64_t> vote = make_vote(file, values, error, largest ? *largest : 0);
    std::vector<int64_t> all(vote.size());
    collective::CommCall call(*file.comm, true);
    const int failed =
        collective::run(call, collective::allreduce(call, vote.data(), all.data(), static_cast<int64_t>(vote.size()),
                                                    datatype::predefined(MPI_INT64_T), datatype::predefined(MPI_MAX)));
    if (error || failed) return mine.or_else(failed);
    if (all[0] != 0) {
        const auto first = static_cast<int>(all[0] & 0xffffffff);
        return fail(first, "rank %lld has failed in this call (%s): %s",
                    static_cast<long long>(file.comm->size - (all[0] >> 32)), what, comm::text_of(first).c_str());
    }
    for (size_t i = 2; i < all.size(); i += 2)
        if (all[i] != ~all[i + 1])
            return fail(MPI_ERR_NOT_SAME, "the processes pass different values: %s must be the same on all", what);
    if (largest) *largest = all[1];
    return MPI_SUCCESS;
}

void set_view(File& file, const FileView& view) {
    file.view.release();
    file.view = view;
    file.position = 0;
}

bool caches_differ(const File& file) {
    if (file.caching == Caching::none) return false;
    collective::Exchange& members = collective::exchange_of(*file.comm);
    if (members.size == 1) return false;
    return file.caching == Caching::by_process || members.hosts() || members.each_has_its_host();
}

int size_of(File& file, int64_t& bytes) {
    const int failed = system_call([&] { return file.system->size(bytes); });
    return failed ? fail_of(failed, "read the size of", file.name) : MPI_SUCCESS;
}

int check_locks(File& file) {
    const Extent byte{0, 1};
    const LockedTurn turn(file);
    turn.wait();
    const int failed = system_call([&] {
        const int refused = file.system->lock(byte, file.may_write());
        if (!refused) file.system->unlock(byte);
        return refused;
    });
    if (failed == 0 || failed == EAGAIN) return MPI_SUCCESS;
    return fail(MPI_ERR_UNSUPPORTED_OPERATION, "the file system of \"%s\" has no locks, which atomic mode requires: %s",
                file.name.c_str(), std::strerror(failed));
}

}  // namespace starling::file
