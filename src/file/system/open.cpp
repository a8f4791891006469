#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "file/system/driver.h"

namespace starling::file {

namespace {

enum { kPosix, kNfs, kLustre };
constexpr Driver kDrivers[] = {
    {"posix", open_posix},
    {"nfs", open_nfs},
    {"lustre", open_lustre},
};

/// File systems (f_type of statfs(2)) that need another driver than posix. A FUSE file system may be of any kind, so it is expected to have
/// caches that other hosts' writes do not change.
struct FileSystemType {
    unsigned long type;
    int driver;
};
constexpr FileSystemType kTypes[] = {
    {0x6969, kNfs},      // NFS
    {0x65735546, kNfs},  // FUSE
    {0xff534d42, kNfs},  // CIFS
    {0xfe534d42, kNfs},  // SMB 2 and 3
    {0x01021997, kNfs},  // 9P
    {0x5346414f, kNfs},  // AFS
    {0x6b414653, kNfs},  // AFS (kAFS)
    {0x786f4256, kNfs},  // shared folders of VirtualBox
    {0x0bd00bd0, kLustre},
};

const Driver* driver_of_name(std::string_view name) {
    for (const Driver& driver : kDrivers)
        if (name == driver.name) return &driver;
    return nullptr;
}

const Driver* driver_of_type(unsigned long type) {
    for (const FileSystemType& known : kTypes)
        if (known.type == type) return &kDrivers[known.driver];
    return &kDrivers[kPosix];
}

/// Returns the type of the file system of a file, or of its folder if it does not exist yet; 0: unknown.
unsigned long file_system_type(const std::string& path) {
    struct statfs status;
    if (::statfs(path.c_str(), &status) == 0) return static_cast<uint32_t>(status.f_type);
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    return ::statfs(folder.c_str(), &status) == 0 ? static_cast<uint32_t>(status.f_type) : 0;
}

}  // namespace

int open_file(const OpenParams& params, std::unique_ptr<OpenFile>& opened) {
    const Driver* const driver =
        params.driver.empty() ? driver_of_type(file_system_type(params.path)) : driver_of_name(params.driver);
    return driver ? driver->open(params, opened) : ENOTSUP;
}

void renew_folder(const std::string& path) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    struct statx status;
    ::statx(AT_FDCWD, folder.c_str(), AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME, &status);
}

int remove_file(const std::string& path) {
    return try_in_renewed_folder(path, [&] { return ::unlink(path.c_str()) == 0 ? 0 : errno; });
}

int identify_file(const std::string& path, uint64_t& device, uint64_t& inode) {
    struct stat status;
    if (::stat(path.c_str(), &status) != 0) return errno;
    device = status.st_dev;
    inode = status.st_ino;
    return 0;
}

}  // namespace starling::file
