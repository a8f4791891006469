// A FUSE file system for tests that behaves as a network file system does on one host: network_fs BACKING MOUNTPOINT [OPTIONS]. Several mounts
// of one backing folder stand for several hosts. With --cache the kernel keeps pages and attributes until a file is opened again. With
// --delay-writes written bytes stay here until flush, fsync, or a lock; with --by-handle each open file has its own ones. Other options make it slow, short of space, or let its calls fail.
//
// The extended attributes of the mount point control it at run time: user.fail_at (the n-th call from now on that moves data or syncs fails
// with EIO; 0: none), user.space and user.quota (bytes that may be written from now on, else ENOSPC or EDQUOT; -1: no limit), user.steps
// (calls so far; read-only). With --delay-writes a lack of space is reported when the bytes leave this host.
#define FUSE_USE_VERSION 314

#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace {

struct Options {
    std::string backing, mount_point;
    bool cache = false, delay_writes = false, by_handle = false, no_locks = false, short_writes = false, direct = false;
    int most_delay_us = 0, megabytes_a_second = 0;
    uint64_t seed = 1;
} options;

std::mutex mutex;
std::mt19937_64 random_bits;
std::atomic<int64_t> steps{0}, fail_at{0}, space{-1};
std::atomic<int> space_error{ENOSPC};

/// Bytes that programs of this mount have written, and that the backing file does not have yet.
struct Unsent {
    int64_t offset;
    std::string bytes;
    int64_t end() const { return offset + static_cast<int64_t>(bytes.size()); }
};
/// The bytes of each file, by device, inode and, with --by-handle, the open file's descriptor.
using Number = std::tuple<dev_t, ino_t, int>;
std::map<Number, std::vector<Unsent>> unsent_of;

std::string backing(const char* path) { return options.backing + path; }
int result_of(int64_t result) { return result < 0 ? -errno : static_cast<int>(result); }

Number number_of(int descriptor) {
    struct stat status {};
    ::fstat(descriptor, &status);
    return {status.st_dev, status.st_ino, options.by_handle ? descriptor : -1};
}

/// Counts a call that moves data, delays it, and returns -EIO if it is the one that must fail.
int step() {
    const int64_t now = ++steps;
    if (options.most_delay_us > 0) {
        std::unique_lock lock(mutex);
        const auto delay = static_cast<useconds_t>(random_bits() % static_cast<uint64_t>(options.most_delay_us));
        lock.unlock();
        ::usleep(delay);
    }
    return now == fail_at ? -EIO : 0;
}

/// Waits as long as a server needs to send `bytes`. All mounts of a backing folder share the server's link, whose lock is the folder's.
void take_link_time(int64_t bytes) {
    if (options.megabytes_a_second == 0 || bytes <= 0) return;
    static const int link = ::open(options.backing.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::flock(link, LOCK_EX);
    ::usleep(static_cast<useconds_t>(bytes / options.megabytes_a_second));
    ::flock(link, LOCK_UN);
}

/// Returns how many of `bytes` have space. Needs the mutex.
size_t take_space(size_t bytes) {
    if (space < 0) return bytes;
    bytes = std::min(bytes, static_cast<size_t>(space.load()));
    space -= static_cast<int64_t>(bytes);
    return bytes;
}

/// Writes the bytes that are kept here to the backing file.
int send_all(int descriptor) {
    const std::lock_guard lock(mutex);
    const auto found = unsent_of.find(number_of(descriptor));
    if (found == unsent_of.end()) return 0;
    int error = 0;
    for (const Unsent& part : found->second) {
        const size_t bytes = take_space(part.bytes.size());
        if (bytes < part.bytes.size()) error = -space_error;
        if (bytes > 0 && ::pwrite(descriptor, part.bytes.data(), bytes, part.offset) < 0) error = -errno;
    }
    unsent_of.erase(found);
    return error;
}

void* init(fuse_conn_info* connection, fuse_config* config) {
    connection->want &= ~static_cast<unsigned>(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_WRITEBACK_CACHE);
    config->use_ino = 1;
    config->direct_io = options.direct;
    // The attributes are read again when a name is looked up, so at open, and not while a file stays open.
    config->entry_timeout = config->negative_timeout = 0;
    config->attr_timeout = options.cache ? 1e6 : 0;
    return nullptr;
}

int get_attributes(const char* path, struct stat* status, fuse_file_info* file) {
    // The mutex also covers the time between the two sizes: meanwhile bytes must not move from one to the other.
    const std::lock_guard lock(mutex);
    const int result = file ? ::fstat(static_cast<int>(file->fh), status) : ::lstat(backing(path).c_str(), status);
    if (result != 0) return -errno;
    const auto found =
        unsent_of.find({status->st_dev, status->st_ino, file && options.by_handle ? static_cast<int>(file->fh) : -1});
    if (found != unsent_of.end())
        for (const Unsent& part : found->second) status->st_size = std::max<int64_t>(status->st_size, part.end());
    return 0;
}

int open_backing(const char* path, int flags, mode_t mode, fuse_file_info* file) {
    // Unsent bytes are written through any descriptor of the file, so all are open for writing if possible.
    const int access = flags & ~(O_ACCMODE | O_NONBLOCK | O_APPEND | O_ASYNC);
    int descriptor = ::open(backing(path).c_str(), access | O_RDWR | O_CLOEXEC, mode);
    if (descriptor < 0 && !(flags & O_CREAT)) descriptor = ::open(backing(path).c_str(), flags | O_CLOEXEC, mode);
    if (descriptor < 0) return -errno;
    file->fh = static_cast<uint64_t>(descriptor);
    return 0;
}

int open_file(const char* path, fuse_file_info* file) { return open_backing(path, file->flags & ~O_CREAT, 0, file); }
int create_file(const char* path, mode_t mode, fuse_file_info* file) {
    return open_backing(path, file->flags | O_CREAT, mode, file);
}

int read_file(const char*, char* buffer, size_t bytes, off_t offset, fuse_file_info* file) {
    if (const int error = step()) return error;
    const int descriptor = static_cast<int>(file->fh);
    take_link_time(static_cast<int64_t>(bytes));
    const std::lock_guard lock(mutex);
    int64_t got = ::pread(descriptor, buffer, bytes, offset);
    if (got < 0) return -errno;
    const auto found = unsent_of.find(number_of(descriptor));
    if (found == unsent_of.end()) return static_cast<int>(got);
    const int64_t end = offset + static_cast<int64_t>(bytes);
    for (const Unsent& part : found->second) {
        const int64_t first = std::max<int64_t>(part.offset, offset), last = std::min(part.end(), end);
        if (last <= offset) continue;
        if (last - offset > got) std::memset(buffer + got, 0, static_cast<size_t>(last - offset - got)), got = last - offset;
        if (first < last)
            std::memcpy(buffer + first - offset, part.bytes.data() + first - part.offset, static_cast<size_t>(last - first));
    }
    return static_cast<int>(got);
}

/// Returns how many of `bytes` a write may store: fewer with --short-writes or if the space ends; 0: no space.
size_t allowed(size_t bytes) {
    const std::lock_guard lock(mutex);
    if (options.short_writes && bytes > 1) bytes = 1 + random_bits() % bytes;
    return options.delay_writes ? bytes : take_space(bytes);
}

int write_file(const char*, const char* buffer, size_t bytes, off_t offset, fuse_file_info* file) {
    if (const int error = step()) return error;
    bytes = allowed(bytes);
    if (bytes == 0) return -space_error;
    const int descriptor = static_cast<int>(file->fh);
    if (!options.delay_writes) return result_of(::pwrite(descriptor, buffer, bytes, offset));
    const std::lock_guard lock(mutex);
    unsent_of[number_of(descriptor)].push_back({offset, std::string(buffer, bytes)});
    return static_cast<int>(bytes);
}

int flush_file(const char*, fuse_file_info* file) { return send_all(static_cast<int>(file->fh)); }

int sync_file(const char*, int, fuse_file_info* file) {
    if (const int error = step()) return error;
    return send_all(static_cast<int>(file->fh));
}

int release_file(const char*, fuse_file_info* file) {
    ::close(static_cast<int>(file->fh));
    return 0;
}

int truncate_file(const char* path, off_t size, fuse_file_info* file) {
    if (!file) return result_of(::truncate(backing(path).c_str(), size));
    if (const int error = send_all(static_cast<int>(file->fh))) return error;
    return result_of(::ftruncate(static_cast<int>(file->fh), size));
}

/// Locks the backing file, so that all mounts exclude each other.
int lock_file(const char*, fuse_file_info* file, int command, struct flock* request) {
    if (options.no_locks) return -ENOLCK;
    const int descriptor = static_cast<int>(file->fh);
    if (const int error = send_all(descriptor)) return error;
    const pid_t pid = request->l_pid;
    request->l_pid = 0;
    const int result = ::fcntl(descriptor,
                               command == F_GETLK    ? F_OFD_GETLK
                               : command == F_SETLKW ? F_OFD_SETLKW
                                                     : F_OFD_SETLK,
                               request);
    const int error = result < 0 ? -errno : 0;
    request->l_pid = pid;
    return error;
}

int read_folder(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
    DIR* const folder = ::opendir(backing(path).c_str());
    if (!folder) return -errno;
    while (const dirent* entry = ::readdir(folder)) fill(buffer, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
    ::closedir(folder);
    return 0;
}

int make_folder(const char* path, mode_t mode) { return result_of(::mkdir(backing(path).c_str(), mode)); }
int remove_folder(const char* path) { return result_of(::rmdir(backing(path).c_str())); }
int remove_name(const char* path) { return result_of(::unlink(backing(path).c_str())); }
int rename_file(const char* from, const char* to, unsigned) {
    return result_of(::rename(backing(from).c_str(), backing(to).c_str()));
}
int change_mode(const char* path, mode_t mode, fuse_file_info*) { return result_of(::chmod(backing(path).c_str(), mode)); }
int status_of(const char* path, struct statvfs* status) { return result_of(::statvfs(backing(path).c_str(), status)); }

int set_attribute(const char*, const char* name, const char* value, size_t bytes, int) {
    const int64_t number = std::atoll(std::string(value, bytes).c_str());
    if (!std::strcmp(name, "user.fail_at"))
        fail_at = number ? steps + number : 0;
    else if (std::strcmp(name, "user.space") != 0 && std::strcmp(name, "user.quota") != 0)
        return -EOPNOTSUPP;
    else
        space_error = std::strcmp(name, "user.quota") ? ENOSPC : EDQUOT, space = number;
    return 0;
}

int get_attribute(const char*, const char* name, char* value, size_t bytes) {
    if (std::strcmp(name, "user.steps") != 0) return -ENODATA;
    const std::string text = std::to_string(steps);
    if (bytes == 0) return static_cast<int>(text.size());
    if (bytes < text.size()) return -ERANGE;
    std::memcpy(value, text.data(), text.size());
    return static_cast<int>(text.size());
}

fuse_operations operations() {
    fuse_operations calls{};
    calls.init = init, calls.getattr = get_attributes, calls.readdir = read_folder, calls.statfs = status_of;
    calls.open = open_file, calls.create = create_file, calls.read = read_file, calls.write = write_file;
    calls.flush = flush_file, calls.fsync = sync_file, calls.release = release_file, calls.truncate = truncate_file;
    calls.lock = lock_file, calls.mkdir = make_folder, calls.rmdir = remove_folder, calls.unlink = remove_name;
    calls.rename = rename_file, calls.chmod = change_mode;
    calls.setxattr = set_attribute, calls.getxattr = get_attribute;
    return calls;
}

int run() {
    const fuse_operations calls = operations();
    const char* words[] = {"network_fs", "-o", "default_permissions,allow_other,fsname=network_fs"};
    fuse_args arguments = FUSE_ARGS_INIT(3, const_cast<char**>(words));
    fuse* const system = fuse_new(&arguments, &calls, sizeof calls, nullptr);
    if (!system) return 1;
    if (fuse_mount(system, options.mount_point.c_str()) != 0) {
        std::fprintf(stderr, "network_fs: cannot mount at %s: the tests need root and /dev/fuse\n",
                     options.mount_point.c_str());
        return 1;
    }
    fuse_set_signal_handlers(fuse_get_session(system));
    fuse_loop_config* const loop = fuse_loop_cfg_create();
    const int result = fuse_loop_mt(system, loop);
    fuse_loop_cfg_destroy(loop);
    fuse_unmount(system);
    fuse_destroy(system);
    return result == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("A FUSE file system that behaves as a network file system does on one host");
    app.add_option("backing", options.backing, "folder that has the files")->required()->check(CLI::ExistingDirectory);
    app.add_option("mount_point", options.mount_point, "folder where to mount it")->required()->check(CLI::ExistingDirectory);
    app.add_flag("--cache", options.cache, "keep pages and attributes until a file is opened again");
    app.add_flag("--delay-writes", options.delay_writes, "keep written bytes until flush, fsync or a lock");
    app.add_flag("--by-handle", options.by_handle, "delay the writes of each open file on their own");
    app.add_flag("--no-locks", options.no_locks, "refuse locks with ENOLCK");
    app.add_flag("--short-writes", options.short_writes, "write fewer bytes than asked for");
    app.add_flag("--direct", options.direct, "bypass the kernel's cache");
    app.add_option("--delay-us", options.most_delay_us, "longest delay of a call that moves data, in microseconds");
    app.add_option("--server-speed", options.megabytes_a_second, "megabytes a second that all mounts together can read");
    app.add_option("--seed", options.seed, "seed of delays and short writes");
    CLI11_PARSE(app, argc, argv);
    random_bits.seed(options.seed);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::umask(0);
    return run();
}
