// Opens files on all processes of a communicator.
#include <array>
#include <bit>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/kept_memory.h"
#include "collective/agreement.h"
#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "collective/communicator/creation.h"
#include "collective/survivors/agreements.h"
#include "comm/member_hosts.h"
#include "file/aggregator_choice.h"
#include "file/file.h"
#include "file/file_table.h"
#include "file/gather.h"
#include "file/revocation.h"
#include "file/shared_pointer.h"
#include "file/system_call.h"
#include "link/job.h"

namespace starling::file {

namespace {

/// The description of the file that rank 0 has opened, which it sends to all other members.
struct OpenedFile {
    int32_t error = MPI_SUCCESS;
    int32_t amode = 0;
    uint64_t name = 0;  ///< hash of the file's name
    uint64_t device = 0, inode = 0;
    uint64_t hint_bytes = 0;  ///< length of the hints as text
    SharedPointerAddress pointer;
};

/// The hints as text for the other members: "key\0value\0" for each.
std::string hints_as_text(const comm::Info& info) {
    std::string text;
    for (const auto& entry : info.entries) text.append(entry.key).push_back('\0'), text.append(entry.value).push_back('\0');
    return text;
}

comm::Info hints_from_text(const std::string& text) {
    comm::Info info;
    for (size_t at = 0; at < text.size();) {
        const std::string key(text.c_str() + at);
        at += key.size() + 1;
        if (at >= text.size()) break;
        const std::string value(text.c_str() + at);
        at += value.size() + 1;
        info.set(key, value);
    }
    return info;
}

/// gather_hints() without the library's lock: the file of hints may be on a slow file system.
comm::Info gather_here(const comm::Info& info, const std::string& name) {
    return system_call([&] { return gather_hints(info, name); });
}

int open_here(File& file, bool first) {
    OpenParams params;
    params.path = file.name;
    params.driver = file.hints.driver;
    params.read = file.may_read();
    params.write = file.may_write();
    params.create = first && file.amode & MPI_MODE_CREATE;
    params.exclusive = first && file.amode & MPI_MODE_EXCL;
    params.mode = file.hints.permissions;
    params.striping_unit = file.hints.striping_unit;
    params.striping_factor = file.hints.striping_factor;
    params.created = &file.created;
    const int failed = system_call([&] {
        const int error = open_file(params, file.system);
        if (!error) file.layout = file.system->layout();
        return error;
    });
    return failed ? fail_of(failed, "open", file.name) : MPI_SUCCESS;
}

/// Stores which file of the host is open.
int identify(File& file, OpenedFile& opened) {
    const int failed = system_call([&] { return file.system->identify(file.device, file.inode); });
    if (failed) return fail_of(failed, "examine", file.name);
    opened.device = file.device;
    opened.inode = file.inode;
    return MPI_SUCCESS;
}

int broadcast(File& file, void* data, size_t bytes) {
    collective::CommCall call(*file.comm, true);
    return collective::run(call, collective::bcast(call, data, static_cast<int64_t>(bytes), datatype::predefined(MPI_BYTE), 0));
}

void use_hints(File& file, const comm::Info& info) {
    std::string name = file.name;
    const std::string driver = split_prefix(name);
    file.hints = read_hints(file.comm->rank == 0 ? gather_here(info, name) : info);
    if (!driver.empty()) file.hints.driver = driver;
    file.name = name;
}

/// The part of rank 0: opens the file, creates the shared pointer, and describes both.
int open_first(File& file, const comm::Info& info, OpenedFile& opened) {
    use_hints(file, info);
    opened.amode = file.amode;
    opened.name = std::hash<std::string>()(file.name);
    int error = open_here(file, true);
    if (!error) error = identify(file, opened);
    if (!error) error = create_shared_pointer(file, opened.pointer);
    return error;
}

/// The part of another member: opens what rank 0 has opened, and compares.
int open_next(File& file, const comm::Info& info, const OpenedFile& opened) {
    use_hints(file, info);
    if (opened.error) return fail(opened.error, "rank 0 could not open the file; its error text has the reason");
    if (opened.amode != file.amode)
        return fail(MPI_ERR_NOT_SAME, "the access mode %d differs from that of rank 0, which is %d", file.amode, opened.amode);
    const bool same_host = link::on_this_host(file.comm->local_group().at(0));
    if (!same_host && opened.name != std::hash<std::string>()(file.name))
        return fail(MPI_ERR_NOT_SAME, "the file name \"%s\" differs from that of rank 0", file.name.c_str());
    if (const int error = open_here(file, false)) return error;
    OpenedFile mine;
    if (const int error = identify(file, mine)) return error;
    if (same_host && (mine.device != opened.device || mine.inode != opened.inode))
        return fail(MPI_ERR_NOT_SAME, "the name \"%s\" leads to another file than that of rank 0", file.name.c_str());
    return use_shared_pointer(file, opened.pointer);
}

/// Returns whether members may die while others continue: in a job that continues after failures, and where several jobs are connected. The
/// same on all members.
bool survives_deaths(const comm::Comm& comm) {
    link::Job* const mine = link::self().job;
    if (mine->segment().header().recovers) return true;
    for (int rank = 0; rank < comm.size; ++rank)
        if (comm.local_group().at(rank).job != mine) return true;
    return false;
}

/// Returns success if no member has an error and none has died; otherwise this member's error, or one that reports the death. The same kind
/// of result on all living members.
int agree_on_success(comm::Comm& comm, int error) {
    const collective::ErrorHere here(error);
    int all_succeeded = error ? 0 : 1;
    const int dead = collective::run(collective::agree_among_living(comm, all_succeeded));
    if (error || dead || all_succeeded) return here.or_else(dead);
    return fail(MPIX_ERR_PROC_FAILED, "a process has died or revoked the communicator during the call; use MPIX_Comm_shrink");
}

/// Performs the collective steps after the communicator exists. Each member performs all of them, whatever fails.
int open_on_all(File& file, const comm::Info& info) {
    OpenedFile opened;
    std::string text;
    const bool first = file.comm->rank == 0;
    int error = MPI_SUCCESS;
    if (first) {
        error = opened.error = open_first(file, info, opened);
        text = hints_as_text(file.hints.given);
        opened.hint_bytes = text.size();
    }
    const collective::ErrorHere here(error);
    const int failed = broadcast(file, &opened, sizeof opened);
    if (!failed) {
        text.resize(opened.hint_bytes);
        error = here.or_else(text.empty() ? MPI_SUCCESS : broadcast(file, text.data(), text.size()));
        if (!error && !first) error = open_next(file, hints_from_text(text), opened);
    } else {
        error = here.or_else(failed);
    }
    if (!error && KeptMemory::is_short()) error = fail(MPI_ERR_NO_MEM, "this process has no memory left");
    const collective::ErrorHere result(error);
    auto caching = static_cast<int64_t>(error ? Caching::none : system_call([&] { return file.system->caching(); }));
    if ((error = agree_on(file, {}, result.or_else(MPI_SUCCESS), "file", &caching))) return error;
    file.caching = static_cast<Caching>(caching);
    return share_host_names(file);
}

/// Sets the file pointers of a file opened with MPI_MODE_APPEND to its end. Every member reads the size, so all members succeed or, on the
/// agreement, fail.
int move_to_end(File& file) {
    int64_t bytes = 0;
    int error = size_of(file, bytes);
    if (!error) {
        file.position = bytes;
        file.shared->used = true;  // so that MPI_File_set_view resets it
        if (file.comm->rank == 0) error = store_shared_pointer(file, bytes);
    }
    return collective::agree(*file.comm, error, "file");
}

/// Removes the file if this process has created it in an opening that fails on all members, unless its name leads to another file by now.
void remove_created(const File& file) {
    if (!file.created || file.inode == 0) return;
    system_call([&] {
        uint64_t device = 0, inode = 0;
        const int failed = identify_file(file.name, device, inode);
        if (failed || device != file.device || inode != file.inode) return failed;
        return remove_file(file.name);
    });
}

/// Undoes an opening that has failed on all members.
int undo_opening(File& file, int error) {
    const collective::ErrorHere result(error);
    if (file.survives || !is_death(error)) remove_created(file);
    // No member may create the file anew before it is removed. All members take part, since their access modes and errors may differ.
    if (file.survives)
        agree_on_success(*file.comm, MPI_SUCCESS);
    else
        collective::agree(*file.comm, MPI_SUCCESS, "file");
    destroy(file);
    return result.or_else(MPI_SUCCESS);
}

}  // namespace

int share_hints(File& file, const comm::Info& info) {
    // Hints that the info does not name keep their values (MPI_File_set_info).
    comm::Info all = file.hints.given;
    for (const auto& entry : info.entries) all.set(entry.key, entry.value);
    std::string text = file.comm->rank == 0 ? hints_as_text(gather_here(all, file.name)) : std::string();
    uint64_t bytes = text.size();
    if (const int error = broadcast(file, &bytes, sizeof bytes)) return error;
    text.resize(bytes);
    if (bytes > 0)
        if (const int error = broadcast(file, text.data(), text.size())) return error;
    const std::string driver = file.hints.driver;
    file.hints = read_hints(hints_from_text(text));
    file.hints.driver = driver;
    return share_host_names(file);
}

int share_host_names(File& file) {
    if (!names_hosts(file.hints.placement) || !file.host_names.empty()) return MPI_SUCCESS;
    using HostName = std::array<char, 64>;
    HostName mine{};
    // Each member knows its own host.
    const std::string name = comm::host_name(file.comm->collective.roster(), file.comm->rank);
    name.copy(mine.data(), mine.size() - 1);
    std::vector<HostName> all;
    const int failed = gather(file, mine, all);
    if (const int error = agree_on(file, {}, failed, "list of hosts")) return error;
    for (const HostName& one : all) file.host_names.emplace_back(one.data());
    return MPI_SUCCESS;
}

int check_amode(int amode) {
    constexpr int kAccess = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;
    constexpr int kKnown = kAccess | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN |
                           MPI_MODE_SEQUENTIAL | MPI_MODE_APPEND;
    if (amode & ~kKnown) return fail(MPI_ERR_AMODE, "the access mode %d has bits that are not MPI_MODE constants", amode);
    if (std::popcount(static_cast<unsigned>(amode & kAccess)) != 1)
        return fail(MPI_ERR_AMODE, "the access mode must have one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR");
    if (amode & MPI_MODE_RDONLY && amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))
        return fail(MPI_ERR_AMODE, "MPI_MODE_RDONLY excludes MPI_MODE_CREATE and MPI_MODE_EXCL");
    if (amode & MPI_MODE_RDWR && amode & MPI_MODE_SEQUENTIAL)
        return fail(MPI_ERR_AMODE, "MPI_MODE_RDWR excludes MPI_MODE_SEQUENTIAL");
    return MPI_SUCCESS;
}

int open(comm::Comm& comm, const OpenArguments& arguments, File*& opened) {
    const bool survives = survives_deaths(comm);
    comm::Comm* own = nullptr;
    int error = collective::run(collective::duplicate(comm, own, arguments.error));
    // A death or a revocation may have ended the step on some members only. The others would wait for these.
    if (survives) error = agree_on_success(comm, error);
    if (error) {
        if (own) own->release();
        return error;
    }
    own->set_errhandler(comm::errors_return());
    own->name = ("file " + arguments.name).substr(0, MPI_MAX_OBJECT_NAME - 1);  // as reports of waits show it
    File& file = *make_file();
    file.comm = own;
    end_accesses_at_revocation(file);
    file.name = arguments.name;
    file.amode = arguments.amode;
    file.survives = survives;
    error = open_on_all(file, arguments.info);
    if (!error && arguments.amode & MPI_MODE_APPEND) error = move_to_end(file);
    if (survives) error = agree_on_success(*own, error);
    if (error) return undo_opening(file, error);
    opened = &file;
    return MPI_SUCCESS;
}

}  // namespace starling::file
