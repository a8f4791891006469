#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "file/system/open_file.h"
#include "mpi.h"

namespace starling::file {

namespace {

/// The meaning of an errno value for a file: the error class of MPI 5.0 section 14.7, and the remedy.
struct FileError {
    int system_error;
    int error_class;
    const char* remedy;
};

constexpr FileError kFileErrors[] = {
    {ENOENT, MPI_ERR_NO_SUCH_FILE, "correct the name, or open with MPI_MODE_CREATE; the folder must exist on all hosts"},
    {EEXIST, MPI_ERR_FILE_EXISTS, "remove the file first, or open without MPI_MODE_EXCL"},
    {EACCES, MPI_ERR_ACCESS, "change the permissions of the file or of its folders"},
    {EPERM, MPI_ERR_ACCESS, "the file or its file system forbids this (attributes such as `immutable`, seals, security rules)"},
    {EISDIR, MPI_ERR_BAD_FILE, "the name is a folder: use a file's name"},
    {ENOTDIR, MPI_ERR_BAD_FILE, "a part of the name before the last `/` is not a folder: correct the name"},
    {ENAMETOOLONG, MPI_ERR_BAD_FILE, "use a shorter name: most file systems allow 255 bytes for each part and 4095 for all"},
    {ELOOP, MPI_ERR_BAD_FILE, "symbolic links in the name lead to each other: correct them"},
    {ESPIPE, MPI_ERR_BAD_FILE, "the name is a pipe, socket or terminal, which has no offsets: use a file's name"},
    {ENODEV, MPI_ERR_BAD_FILE, "the device of this name does not exist"},
    {ENOSPC, MPI_ERR_NO_SPACE, "free space on the file system (`df`, and `df -i` for files), or use another one"},
    {EFBIG, MPI_ERR_NO_SPACE, "raise the limit on file sizes (`ulimit -f`), or use a file system that allows longer files"},
    {EDQUOT, MPI_ERR_QUOTA, "remove files, or ask for a higher quota (`quota`, `lfs quota`)"},
    {EROFS, MPI_ERR_READ_ONLY, "open with MPI_MODE_RDONLY, or use a file system that is mounted for writing"},
    {EBUSY, MPI_ERR_FILE_IN_USE, "end the programs that use the file (`fuser` lists them)"},
    {ETXTBSY, MPI_ERR_FILE_IN_USE, "the file is a program that runs now: end it, or write another file"},
    {EMFILE, MPI_ERR_IO, "close files, or raise the limit on open files (`ulimit -n`)"},
    {ENFILE, MPI_ERR_IO, "the host has too many open files: raise fs.file-max, or end other programs"},
    {ENOMEM, MPI_ERR_NO_MEM, "the host has too little memory: use fewer processes per host, or smaller buffers"},
    {ESTALE, MPI_ERR_IO, "the file was removed or replaced on the file server: close it and open it again"},
    {EAGAIN, MPI_ERR_IO, "another program keeps the range locked: end it, or turn off MPI's atomic mode"},
    {ENOLCK, MPI_ERR_UNSUPPORTED_OPERATION,
     "the file system has no locks, which MPI's atomic mode needs: mount it with locks (NFS: without `nolock`; Lustre: "
     "`flock`), or turn "
     "off the atomic mode"},
    {ENOTSUP, MPI_ERR_UNSUPPORTED_OPERATION,
     "the file system or the driver that was asked for (prefix, hint or ROMIO_FSTYPE_FORCE) cannot do this"},
    {EIO, MPI_ERR_IO, "the device or the file server has failed: see the kernel's messages (`dmesg`)"},
    {ETIMEDOUT, MPI_ERR_IO, "the file server does not answer: check the network and the server"},
    {EBADF, MPI_ERR_IO,
     "the file's descriptor is closed or has another mode: check that the program closes no descriptors of others"},
    {EINVAL, MPI_ERR_IO, "the file system does not accept the offset, length or option: check them"},
};

constexpr FileError kOtherError{0, MPI_ERR_IO, "see the kernel's messages (`dmesg`) and the state of the file system"};

const FileError& meaning(int system_error) {
    for (const FileError& known : kFileErrors)
        if (known.system_error == system_error) return known;
    return kOtherError;
}

/// Shortens a name so that the rest of the sentence has room (base/error.h): its first and last bytes.
std::string shown(const std::string& path) {
    constexpr size_t kMost = 400;
    if (path.size() <= kMost) return path;
    return path.substr(0, kMost / 2) + "..." + path.substr(path.size() - kMost / 2);
}

/// Returns the folder to which a relative name refers. The processes of a job may have different ones.
std::string working_folder(const std::string& path) {
    char folder[400];
    if (path.starts_with('/') || !::getcwd(folder, sizeof folder)) return {};
    return std::string(" in the working directory ") + folder;
}

}  // namespace

int fail_of(int system_error, const char* doing, const std::string& path) {
    const FileError& error = meaning(system_error);
    const char* const remedy = system_error == ENOENT && path.empty() ? "the name is empty: use a file's name" : error.remedy;
    return fail(error.error_class, "cannot %s file %s%s: %s; %s", doing, path.empty() ? "\"\"" : shown(path).c_str(),
                system_error == ENOENT ? working_folder(path).c_str() : "", std::strerror(system_error), remedy);
}

}  // namespace starling::file
