#include "file/system/lustre.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "file/system/driver.h"
#include "file/system/lock_scope.h"
#include "file/system/lustre_format.h"
#include "file/system/lustre_layout.h"

namespace starling::file {

namespace {

constexpr size_t kMostLayoutBytes = 128 << 10;  // Lustre stores a layout as an extended attribute, of 64 KB at most

/// Stores the layout of a new file whose creation was delayed for this (open flags O_NOCTTY and O_ASYNC). The values are hints: if Lustre
/// does not accept them, or the file has a layout already, its own values stay.
void request_layout(int descriptor, const OpenParams& params) {
    LustreStripes stripes;
    stripes.stripe_bytes = static_cast<uint32_t>(params.striping_unit);
    stripes.stripes = static_cast<uint16_t>(std::min<int>(params.striping_factor, kLustreAllServers));
    stripes.first_server = kLustreAllServers;
    ::ioctl(descriptor, kLustreSetStripe, &stripes);
}

FileLayout current_layout(int descriptor) {
    std::vector<std::byte> bytes(kMostLayoutBytes);
    const LustreStripes request;
    std::copy_n(reinterpret_cast<const std::byte*>(&request), sizeof request, bytes.begin());
    if (::ioctl(descriptor, kLustreGetStripe, bytes.data()) < 0) return {};
    return lustre_layout(bytes);
}

}  // namespace

LustreFile::LustreFile(int descriptor) : PosixFile(descriptor), layout_(current_layout(descriptor)) {
    if (layout_.unit <= 0) layout_ = PosixFile::layout();
}

int LustreFile::lock(Extent range, bool exclusive) {
    return locks_end_at_host(descriptor()) ? ENOLCK : PosixFile::lock(range, exclusive);
}

int open_lustre(const OpenParams& params, std::unique_ptr<OpenFile>& opened) {
    const bool striped = params.create && params.write && (params.striping_unit > 0 || params.striping_factor > 0);
    int descriptor = -1;
    if (const int error = open_descriptor(params, striped ? O_NOCTTY | O_ASYNC : 0, descriptor)) return error;
    if (striped) request_layout(descriptor, params);
    opened = std::make_unique<LustreFile>(descriptor);
    return 0;
}

}  // namespace starling::file
