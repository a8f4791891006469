// The drivers, one per kind of file system, as open_file() finds them.
#pragma once

#include <memory>

#include "file/system/open_file.h"

namespace starling::file {

struct Driver {
    const char* name;
    int (*open)(const OpenParams& params, std::unique_ptr<OpenFile>& opened);
};

int open_posix(const OpenParams& params, std::unique_ptr<OpenFile>& opened);
int open_nfs(const OpenParams& params, std::unique_ptr<OpenFile>& opened);
int open_lustre(const OpenParams& params, std::unique_ptr<OpenFile>& opened);

}  // namespace starling::file
