// Structures and numbers of Lustre's ioctls, little-endian as on the machines that it supports.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace starling::file {

constexpr uint32_t kLustreMagicV1 = 0x0BD10BD0, kLustreMagicV3 = 0x0BD30BD0, kLustreMagicComposite = 0x0BD60BD0;
constexpr uint16_t kLustreAllServers = 0xffff;
constexpr unsigned long kLustreSetStripe = _IOW('f', 154, long), kLustreGetStripe = _IOW('f', 155, long);

/// The beginning of a layout of versions 1 and 3; a list of the servers' objects follows.
struct LustreStripes {
    uint32_t magic = kLustreMagicV1;
    uint32_t pattern = 0;
    uint64_t object[2] = {};
    uint32_t stripe_bytes = 0;
    uint16_t stripes = 0;
    uint16_t first_server = 0;  ///< in a request; 0xffff: any
};
static_assert(sizeof(LustreStripes) == 32);

/// The beginning of a composite layout; its components follow.
struct LustreComposite {
    uint32_t magic, bytes, generation;
    uint16_t flags, components, mirrors, unused[3];
    uint64_t unused_too;
};
static_assert(sizeof(LustreComposite) == 32);

/// One component. Its stripes are at `offset` bytes from the layout's beginning.
struct LustreComponent {
    uint32_t id, flags;
    uint64_t begin, end;
    uint32_t offset, bytes, generation, unused;
    uint64_t time;
};
static_assert(sizeof(LustreComponent) == 48);

}  // namespace starling::file
