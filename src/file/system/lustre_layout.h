// The layout of a Lustre file: over how many servers its stripes go in turn. Lustre returns it by an ioctl as a structure, so neither its
// library nor its headers are needed. The numbers are those of Lustre's public interface (lustre_user.h), the same since Lustre 2.0.
#pragma once

#include <cstddef>
#include <span>

#include "file/system/open_file.h"

namespace starling::file {

/// Reads a layout as the ioctl LL_IOC_LOV_GETSTRIPE returns it: plain (versions 1 and 3), or composite (progressive files), for which the
/// component with the most stripes counts. Returns a unit of 0 for bytes that are no layout.
FileLayout lustre_layout(std::span<const std::byte> bytes);

}  // namespace starling::file
