// The last step of some runs: the living members of the world open a file, write and read it in all ways, and close it, while ranks die.
// MPI_File_open succeeds on all living members or fails on all. A call fails only if a process has died, with an error of that class, and
// MPI_File_close always closes. Then the file is compared with a model, by the bytes of all calls that have begun, and the survivors
// continue with another file.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon.h"
#include "files.h"
#include "player.h"
#include "system.h"

namespace starling::simulation {

namespace {

/// Where the records of the shared pointer begin, behind all pieces.
constexpr int64_t kRecords = 4 << 20;
constexpr int kCalls = 8;
/// The most pieces and bytes that a rank accesses by one call.
constexpr int64_t kMostPieces = 200, kMostBytes = 24'000;

/// One file, as all processes see it: what each of its bytes may be.
struct Model {
    std::string name;
    int64_t piece = 1;     ///< bytes of a piece; consecutive pieces belong to the ranks in turn
    bool deleted = false;  ///< whether the file is deleted when it is closed
    bool is_checked = false;
    /// For each piece the calls that may have written its bytes; 0: none, so that the byte is 0 or behind the end. Other pieces have none.
    std::map<int64_t, std::vector<uint32_t>> writers;
    /// The records that processes have begun to write, and whether the call has succeeded in a process.
    std::map<uint64_t, bool> records;
};
std::map<std::string, Model> models;

uint8_t byte_of(uint32_t call, int64_t offset) {
    return static_cast<uint8_t>(word(call, static_cast<uint64_t>(offset)) % 255 + 1);
}

/// Number of a call by one rank, unique in the file.
uint32_t number_of(int call, int rank) { return static_cast<uint32_t>(call * 1000 + rank + 1); }

constexpr uint64_t kRecordMark = 0xfedcba98ull << 32;

bool someone_has_died() {
    const auto& all = world()->processes();
    return std::any_of(all.begin(), all.end(), [](const auto& one) { return one->state == Process::State::dead; });
}

/// Compares a byte of a piece that was read with those that calls may have written.
void expect_byte(const Model& model, int64_t offset, uint8_t found, const char* what) {
    const auto piece = model.writers.find(offset / model.piece);
    bool good = found == 0 && piece == model.writers.end();
    if (piece != model.writers.end())
        for (const uint32_t call : piece->second) good |= found == (call == 0 ? 0 : byte_of(call, offset));
    if (!good)
        fail_run("%s: byte %" PRId64 " of %s is %d, which no call may have left there", what, offset, model.name.c_str(),
                 found);
}

/// Compares the pieces of a closed file, most of which no call has written.
void expect_pieces(const Model& model, const uint8_t* bytes, int64_t end) {
    for (int64_t at = 0; at < end;) {
        const int64_t next = std::min(end, (at / model.piece + 1) * model.piece);
        if (!model.writers.count(at / model.piece))
            at = std::find_if(bytes + at, bytes + next, [](uint8_t byte) { return byte != 0; }) - bytes;
        for (; at < next; ++at) expect_byte(model, at, bytes[at], "the closed file");
    }
}

/// Compares the records: whole ones, each once, and all whose call has succeeded.
void expect_records(const Model& model, const std::vector<uint8_t>& bytes) {
    std::set<uint64_t> found;
    for (auto at = static_cast<size_t>(kRecords); at < bytes.size(); at += 8) {
        uint64_t record = 0;
        std::memcpy(&record, bytes.data() + at, std::min<size_t>(8, bytes.size() - at));
        if (record == 0) continue;
        if (!model.records.count(record))
            fail_run("%s has an unknown record %" PRIx64 " at %zu", model.name.c_str(), record, at);
        if (!found.insert(record).second) fail_run("%s has record %" PRIx64 " twice", model.name.c_str(), record);
    }
    for (const auto& [record, succeeded] : model.records)
        if (succeeded && !found.count(record)) fail_run("%s lacks record %" PRIx64, model.name.c_str(), record);
}

std::vector<uint8_t> contents_of(const std::string& name) {
    std::vector<uint8_t> bytes;
    const int fd = REAL(open)(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail_run("%s can't be opened: %s", name.c_str(), std::strerror(errno));
    uint8_t part[65536];
    for (ssize_t n; (n = REAL(read)(fd, part, sizeof part)) > 0;) bytes.insert(bytes.end(), part, part + n);
    REAL(close)(fd);
    return bytes;
}

/// Compares the closed file with its model, in the first process that calls this.
void check(Model& model) {
    if (std::exchange(model.is_checked, true)) return;
    const bool is_there = access(model.name.c_str(), F_OK) == 0;
    if (model.deleted && is_there) fail_run("%s was not deleted", model.name.c_str());
    if (model.deleted) return;
    const std::vector<uint8_t> bytes = contents_of(model.name);
    const auto end = static_cast<int64_t>(bytes.size());
    expect_pieces(model, bytes.data(), std::min(end, kRecords));
    for (const auto& [piece, calls] : model.writers)
        if (std::find(calls.begin(), calls.end(), 0u) == calls.end() && end < (piece + 1) * model.piece)
            fail_run("%s ends at %" PRId64 ", before the end of piece %" PRId64, model.name.c_str(), end, piece);
    expect_records(model, bytes);
    REAL(unlink)(model.name.c_str());
}

}  // namespace

std::string unexpected_files() {
    std::string names;
    for (const std::string& name : list_folder()) {
        // No survivor has checked a file if all members have died.
        const auto known = models.find(name);
        if (known == models.end() || known->second.is_checked) names += " " + name;
    }
    return names;
}

/// The file that this process has open.
struct Player::FileUse {
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0, size = 0;
    MPI_File file = MPI_FILE_NULL;
    Model* model = nullptr;
    std::string name;
    Random random{0};  ///< the same on all ranks
};

/// Begins a call: this process may die in it.
void Player::begin_file_call(const std::string& what) {
    process_.doing = what;
    ++file_calls_;
    world()->note("file", me_, file_calls_);
    for (const Fault& fault : script_.faults)
        if (fault.rank == me_ && fault.kind == Fault::Kind::death && fault.call == file_calls_)
            world()->at(world()->now + fault.at, [&process = process_] {
                if (!process.gone()) daemons()->kill(process);
            });
}

/// Returns whether a call has succeeded. Otherwise a process must have died.
bool Player::works_in_spite_of_deaths(int code, const char* what) {
    expect_class(code, what, {MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED});
    if (code != MPI_SUCCESS && !someone_has_died()) fail_run("%s has failed although no process has died", what);
    return code == MPI_SUCCESS;
}

MPI_Info Player::draw_hints(Random& random) {
    MPI_Info info = MPI_INFO_NULL;
    ok(mpi_.Info_create(&info), "MPI_Info_create");
    const auto set = [&](const char* key, const char* value) { ok(mpi_.Info_set(info, key, value), "MPI_Info_set"); };
    set("cb_buffer_size", random.one_of({"8192", "8192", "16384", "1048576"}));
    set("romio_cb_write", random.one_of({"enable", "enable", "automatic", "disable"}));
    set("romio_cb_read", random.one_of({"enable", "enable", "automatic", "disable"}));
    if (random.one_in(3)) set("cb_nodes", random.one_of({"1", "2", "3", "100"}));
    if (random.one_in(3)) set("starling_file_driver", "nfs");
    return info;
}

/// Opens a file on all living members. Returns false if that has failed, on all of them.
bool Player::open_file(FileUse& use) {
    const std::string name = make_folder() + "/" + use.name;
    Model& model = models[use.name];
    model.name = name;
    use.model = &model;
    static constexpr int64_t kPieces[] = {1, 7, 64, 600};
    model.piece = use.random.one_of(kPieces);
    model.deleted = use.random.one_in(4);
    MPI_Info info = draw_hints(use.random);
    const int amode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | (model.deleted ? MPI_MODE_DELETE_ON_CLOSE : 0);
    begin_file_call("MPI_File_open of " + use.name);
    const int code = mpi_.File_open(use.comm, name.c_str(), amode, info, &use.file);
    const bool good = works_in_spite_of_deaths(code, "MPI_File_open");
    if (good != (use.file != MPI_FILE_NULL)) fail_run("MPI_File_open has failed and has set a handle, or the other way round");
    ok(mpi_.Info_free(&info), "MPI_Info_free");
    expect_alike("MPI_File_open of " + use.name, good ? "success" : "failure");
    return good;
}

/// Sets a view of the pieces of this rank. Until then positions would be those of the file.
bool Player::set_file_view(FileUse& use) {
    const auto piece = static_cast<int>(use.model->piece);
    MPI_Datatype plain, pieces;
    ok(mpi_.Type_contiguous(piece, MPI_BYTE, &plain), "MPI_Type_contiguous");
    ok(mpi_.Type_create_resized(plain, 0, MPI_Aint{piece} * use.size, &pieces), "MPI_Type_create_resized");
    ok(mpi_.Type_commit(&pieces), "MPI_Type_commit");
    begin_file_call("MPI_File_set_view of " + use.name);
    const int code = mpi_.File_set_view(use.file, MPI_Offset{piece} * use.rank, MPI_BYTE, pieces, "native", MPI_INFO_NULL);
    ok(mpi_.Type_free(&plain), "MPI_Type_free");
    ok(mpi_.Type_free(&pieces), "MPI_Type_free");
    return works_in_spite_of_deaths(code, "MPI_File_set_view");
}

/// Calls one of the functions that move pieces, and completes it.
int Player::move_pieces(FileUse& use, int how, bool writes, int64_t at, std::vector<uint8_t>& data, MPI_Status& status) {
    const auto bytes = static_cast<int>(data.size());
    MPI_Request request = MPI_REQUEST_NULL;
    uint8_t* const to = data.data();
    int code = MPI_SUCCESS;
    switch (how) {
        case 0:
            return writes ? mpi_.File_write_at_all(use.file, at, to, bytes, MPI_BYTE, &status)
                          : mpi_.File_read_at_all(use.file, at, to, bytes, MPI_BYTE, &status);
        case 1:
            ok(mpi_.File_seek(use.file, at, MPI_SEEK_SET), "MPI_File_seek");
            return writes ? mpi_.File_write_all(use.file, to, bytes, MPI_BYTE, &status)
                          : mpi_.File_read_all(use.file, to, bytes, MPI_BYTE, &status);
        case 2:
            code = writes ? mpi_.File_iwrite_at_all(use.file, at, to, bytes, MPI_BYTE, &request)
                          : mpi_.File_iread_at_all(use.file, at, to, bytes, MPI_BYTE, &request);
            return code ? code : mpi_.Wait(&request, &status);
        case 3:
            code = writes ? mpi_.File_write_at_all_begin(use.file, at, to, bytes, MPI_BYTE)
                          : mpi_.File_read_at_all_begin(use.file, at, to, bytes, MPI_BYTE);
            if (code) return code;
            return writes ? mpi_.File_write_at_all_end(use.file, to, &status)
                          : mpi_.File_read_at_all_end(use.file, to, &status);
        case 4:
            code = writes ? mpi_.File_iwrite_at(use.file, at, to, bytes, MPI_BYTE, &request)
                          : mpi_.File_iread_at(use.file, at, to, bytes, MPI_BYTE, &request);
            return code ? code : mpi_.Wait(&request, &status);
        default:
            return writes ? mpi_.File_write_at(use.file, at, to, bytes, MPI_BYTE, &status)
                          : mpi_.File_read_at(use.file, at, to, bytes, MPI_BYTE, &status);
    }
}

/// Writes or reads consecutive pieces of this rank by the call with this number.
bool Player::access_pieces(FileUse& use, int call) {
    Model& model = *use.model;
    const bool writes = !use.random.one_in(3);
    const auto how = static_cast<int>(use.random.below(6));
    const uint64_t first = use.random.below(20),
                   most = use.random.one_in(3) ? 3 : static_cast<uint64_t>(std::min(kMostPieces, kMostBytes / model.piece));
    Random own(mix(use.random.next()) + static_cast<uint64_t>(use.rank));
    const uint64_t count = own.one_in(5) ? 0 : own.below(most);
    const auto begin = static_cast<int64_t>(first) * model.piece;
    std::vector<uint8_t> data(static_cast<size_t>(static_cast<int64_t>(count) * model.piece));
    const auto offset = [&](size_t i) {
        const int64_t position = begin + static_cast<int64_t>(i);
        return (position / model.piece * use.size + use.rank) * model.piece + position % model.piece;
    };
    const uint32_t number = number_of(call, use.rank);
    for (size_t i = 0; i < data.size() && writes; ++i) {
        data[i] = byte_of(number, offset(i));
        std::vector<uint32_t>& writers = model.writers.try_emplace(offset(i) / model.piece, std::vector{0u}).first->second;
        if (writers.back() != number) writers.push_back(number);
    }
    MPI_Status status{};
    begin_file_call(std::string(writes ? "write" : "read") + " " + std::to_string(how) + " of " + use.name + ", call " +
                    std::to_string(call) + ", " + std::to_string(data.size()) + " bytes");
    const int code = move_pieces(use, how, writes, begin, data, status);
    const std::vector<uint8_t> moved = data;
    std::fill(data.begin(), data.end(), 0x33);  // the buffer belongs to this process again
    if (!works_in_spite_of_deaths(code, "a transfer of pieces")) return false;
    int bytes = -1;
    mpi_.Get_count(&status, MPI_BYTE, &bytes);
    if (bytes < 0 || bytes > static_cast<int>(moved.size()) || (writes && bytes != static_cast<int>(moved.size())))
        fail_run("the status has %d bytes of %zu", bytes, moved.size());
    for (size_t i = 0; i < moved.size(); ++i) {
        const int64_t piece = offset(i) / model.piece;
        if (writes) {
            model.writers[piece] = {number};
        } else if (static_cast<int>(i) < bytes) {
            expect_byte(model, offset(i), moved[i], "a read");
        } else if (const auto known = model.writers.find(piece); known != model.writers.end() && known->second.front() != 0) {
            fail_run("a read has ended before piece %" PRId64 ", which was written", piece);
        }
    }
    return true;
}

/// Writes records by the shared pointer, each by one call.
bool Player::write_records(FileUse& use) {
    begin_file_call("MPI_File_set_view of the records of " + use.name);
    if (!works_in_spite_of_deaths(mpi_.File_set_view(use.file, kRecords, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
                                  "MPI_File_set_view"))
        return false;
    for (uint64_t i = 0, count = use.random.between(1, 5); i < count; ++i) {
        const bool ordered = use.random.one_in(2);
        uint64_t record = kRecordMark | static_cast<uint64_t>(use.rank) << 16 | i;
        use.model->records.emplace(record, false);
        begin_file_call("record " + std::to_string(i) + (ordered ? ", ordered," : "") + " of " + use.name);
        const int code = ordered ? mpi_.File_write_ordered(use.file, &record, 8, MPI_BYTE, MPI_STATUS_IGNORE)
                                 : mpi_.File_write_shared(use.file, &record, 8, MPI_BYTE, MPI_STATUS_IGNORE);
        if (!works_in_spite_of_deaths(code, "a write by the shared pointer")) return false;
        use.model->records[kRecordMark | static_cast<uint64_t>(use.rank) << 16 | i] = true;
    }
    return true;
}

/// Calls a function of all members that moves no data.
bool Player::call_on_file(FileUse& use, uint64_t what) {
    begin_file_call("collective call " + std::to_string(what) + " on " + use.name);
    MPI_Offset bytes = 0;
    switch (what) {
        case 0:
            return works_in_spite_of_deaths(mpi_.File_set_atomicity(use.file, use.random.one_in(2)), "MPI_File_set_atomicity");
        case 1:
            return works_in_spite_of_deaths(mpi_.File_preallocate(use.file, static_cast<MPI_Offset>(use.random.below(20'000))),
                                            "MPI_File_preallocate");
        default:
            ok(mpi_.File_get_size(use.file, &bytes), "MPI_File_get_size");
            return works_in_spite_of_deaths(mpi_.File_sync(use.file), "MPI_File_sync");
    }
}

/// Makes the drawn calls until one fails, and closes the file.
void Player::use_file(FileUse& use) {
    bool good = set_file_view(use);
    for (int call = 0; good && call < kCalls; ++call)
        good = use.random.one_in(4) ? call_on_file(use, use.random.below(4)) : access_pieces(use, call);
    if (good) good = write_records(use);
    if (!good && random_.one_in(2)) {
        begin_file_call("MPIX_File_revoke of " + use.name);
        ok(mpi_.File_revoke(use.file), "MPIX_File_revoke");
    }
    begin_file_call("MPI_File_close of " + use.name);
    works_in_spite_of_deaths(mpi_.File_close(&use.file), "MPI_File_close");
    if (use.file != MPI_FILE_NULL) fail_run("MPI_File_close has left a handle");
}

/// A file that was not opened is gone, unless its creator has died.
void Player::check_unopened(const FileUse& use) {
    if (std::exchange(use.model->is_checked, true)) return;
    if (access(use.model->name.c_str(), F_OK) != 0) return;
    if (!someone_has_died()) fail_run("%s was not removed", use.model->name.c_str());
    REAL(unlink)(use.model->name.c_str());
}

/// Returns whether all members of the communicator live. All living members have done with the file.
bool Player::await_members(const FileUse& use) {
    process_.doing = "the agreement after " + use.name;
    int flag = 1;
    const int code = mpi_.Comm_agree(use.comm, &flag);
    expect_class(code, "MPI_Comm_agree", {MPIX_ERR_PROC_FAILED});
    return code == MPI_SUCCESS;
}

void Player::use_files(const Step& step) {
    wait_for_all();
    FileUse use;
    use.comm = comm(step);
    for (uint32_t round = 0; round <= step.count; ++round) {
        ok(mpi_.Comm_rank(use.comm, &use.rank), "MPI_Comm_rank");
        ok(mpi_.Comm_size(use.comm, &use.size), "MPI_Comm_size");
        use.random = Random(mix(script_.seed ^ 0xf11e) + round);
        use.name = "file-" + std::to_string(round);
        const bool opened = open_file(use);
        if (opened) use_file(use);
        const bool all_live = await_members(use);
        opened ? check(*use.model) : check_unopened(use);
        if (all_live) continue;
        MPI_Comm living = MPI_COMM_NULL;
        process_.doing = "the shrink after " + use.name;
        ok(mpi_.Comm_shrink(use.comm, &living), "MPI_Comm_shrink");
        ok(mpi_.Comm_set_errhandler(living, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        if (use.comm != comm(step)) ok(mpi_.Comm_free(&use.comm), "MPI_Comm_free");
        use.comm = living;
    }
    if (use.comm != comm(step)) ok(mpi_.Comm_free(&use.comm), "MPI_Comm_free");
    done().add(Feature::files);
}

}  // namespace starling::simulation
