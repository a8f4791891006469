// The drivers, one per kind of file system, as open_file() finds them.
#pragma once

#include <cerrno>
#include <memory>
#include <string>

#include "file/system/open_file.h"

namespace starling::file {

struct Driver {
    const char* name;
    int (*open)(const OpenParams& params, std::unique_ptr<OpenFile>& opened);
};

int open_posix(const OpenParams& params, std::unique_ptr<OpenFile>& opened);
int open_nfs(const OpenParams& params, std::unique_ptr<OpenFile>& opened);
int open_lustre(const OpenParams& params, std::unique_ptr<OpenFile>& opened);

/// Requests the attributes of a file's folder from the server of a network file system. If another host has changed the folder, this host
/// forgets which names are missing in it, as it otherwise would after half a minute or more.
void renew_folder(const std::string& path);

/// Returns the errno value of `action`. If the file is missing, renews its folder and tries once more.
template <class Action>
int try_in_renewed_folder(const std::string& path, Action action) {
    const int error = action();
    if (error != ENOENT) return error;
    renew_folder(path);
    return action();
}

}  // namespace starling::file
