#include "files.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "system.h"

namespace starling::simulation {

namespace {

namespace fs = std::filesystem;

/// Transfers of more bytes than this may be cut. The records of shared pointers are shorter.
constexpr size_t kWhole = 512;

/// Distinguishes this program from others with the same process id, in another namespace or before this one.
const std::string mark = std::to_string(std::random_device()());

std::string folder;
/// The processes that have open files, by descriptor.
std::map<int, const Process*> owners;

}  // namespace

std::string folder_of_run(pid_t pid) { return "/dev/shm/starling-tests-simulation-" + mark + "-" + std::to_string(pid); }

void begin_files(pid_t pid) { folder = folder_of_run(pid); }

const std::string& make_folder() {
    std::error_code ignored;
    fs::create_directory(folder, ignored);
    return folder;
}

void remove_folder(pid_t pid) {
    std::error_code ignored;
    fs::remove_all(folder_of_run(pid), ignored);
}

std::vector<std::string> list_folder() {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& one : fs::directory_iterator(folder, none)) names.push_back(one.path().filename());
    return names;
}

void note_file(const char* path, int fd) {
    if (fd < 0 || folder.empty()) return;
    // The nfs driver opens its file again by the descriptor.
    const bool again = std::strncmp(path, "/proc/self/fd/", 14) == 0;
    if (again || std::strncmp(path, folder.c_str(), folder.size()) == 0) owners[fd] = world()->current()->leader;
}

void forget_file(int fd) { owners.erase(fd); }

void close_files_of(const Process& process) {
    for (auto at = owners.begin(); at != owners.end();) {
        if (at->second != &process) {
            ++at;
            continue;
        }
        REAL(close)(at->first);
        at = owners.erase(at);
    }
}

namespace {

/// Returns whether the running process calls a function on a file of the run.
bool is_file(int fd) { return caller() && owners.count(fd) > 0; }

/// Lets time pass before and after a call: others act between the decision to call and the effect.
template <class Call>
auto in_turn(Call call) {
    world()->pass(prices().call);
    return after(call());
}

size_t cut(size_t bytes) { return bytes > kWhole && world()->random.one_in(4) ? bytes / 2 : bytes; }

int cut_pieces(int count) { return count > 1 && world()->random.one_in(4) ? count / 2 : count; }

}  // namespace

}  // namespace starling::simulation

using namespace starling::simulation;

SIMULATED ssize_t pread(int fd, void* data, size_t bytes, off_t at) {
    if (!is_file(fd)) return REAL(pread)(fd, data, bytes, at);
    return in_turn([&] { return REAL(pread)(fd, data, cut(bytes), at); });
}

SIMULATED ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
    if (!is_file(fd)) return REAL(pwrite)(fd, data, bytes, at);
    return in_turn([&] { return REAL(pwrite)(fd, data, cut(bytes), at); });
}

SIMULATED ssize_t preadv2(int fd, const iovec* pieces, int count, off_t at, int flags) {
    if (!is_file(fd)) return REAL(preadv2)(fd, pieces, count, at, flags);
    return in_turn([&] { return REAL(preadv2)(fd, pieces, cut_pieces(count), at, flags); });
}

SIMULATED ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t at, int flags) {
    if (!is_file(fd)) return REAL(pwritev2)(fd, pieces, count, at, flags);
    return in_turn([&] { return REAL(pwritev2)(fd, pieces, cut_pieces(count), at, flags); });
}

SIMULATED int ftruncate(int fd, off_t bytes) noexcept {
    if (!is_file(fd)) return REAL(ftruncate)(fd, bytes);
    return in_turn([&] { return REAL(ftruncate)(fd, bytes); });
}

SIMULATED int fallocate(int fd, int mode, off_t at, off_t bytes) {
    if (!is_file(fd)) return REAL(fallocate)(fd, mode, at, bytes);
    return in_turn([&] { return REAL(fallocate)(fd, mode, at, bytes); });
}

SIMULATED int fdatasync(int fd) {
    if (!is_file(fd)) return REAL(fdatasync)(fd);
    return in_turn([&] { return REAL(fdatasync)(fd); });
}

SIMULATED int unlink(const char* path) noexcept {
    if (!caller() || folder.empty() || std::strncmp(path, folder.c_str(), folder.size()) != 0) return REAL(unlink)(path);
    return in_turn([&] { return REAL(unlink)(path); });
}
