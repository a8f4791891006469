#include "file/system/lustre_layout.h"

#include <cstring>

#include "file/system/lustre_format.h"

namespace starling::file {

namespace {

template <class Struct>
bool read_struct(std::span<const std::byte> bytes, size_t at, Struct& value) {
    if (at > bytes.size() || bytes.size() - at < sizeof value) return false;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return true;
}

FileLayout plain_layout(std::span<const std::byte> bytes, size_t at) {
    LustreStripes stripes;
    if (!read_struct(bytes, at, stripes) || stripes.stripe_bytes == 0) return {};
    if (stripes.magic != kLustreMagicV1 && stripes.magic != kLustreMagicV3) return {};
    // -1 stands for all servers of the file system, in a file without data yet.
    const bool known = stripes.stripes != 0 && stripes.stripes != kLustreAllServers;
    return {stripes.stripe_bytes, known ? stripes.stripes : 1};
}

}  // namespace

FileLayout lustre_layout(std::span<const std::byte> bytes) {
    LustreComposite composite;
    if (!read_struct(bytes, 0, composite) || composite.magic != kLustreMagicComposite) return plain_layout(bytes, 0);
    FileLayout widest;
    for (size_t i = 0; i < composite.components; ++i) {
        LustreComponent component;
        if (!read_struct(bytes, sizeof composite + i * sizeof component, component)) break;
        const FileLayout layout = plain_layout(bytes, component.offset);
        if (layout.unit > 0 && (widest.unit == 0 || layout.units > widest.units)) widest = layout;
    }
    return widest;
}

}  // namespace starling::file
