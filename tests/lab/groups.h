// Parses the reports by which hosts join and leave multicast groups: IGMP, versions 2 and 3 (RFC 2236, RFC 3376).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace starling::lab {

struct Wish {
    uint32_t group;  // IPv4 address of the multicast group, in network byte order
    bool join;       // whether the host joins the group; false: it leaves
};

inline uint32_t word_at(const unsigned char* bytes) {
    return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 | static_cast<uint32_t>(bytes[2]) << 16 |
           static_cast<uint32_t>(bytes[3]) << 24;
}

// Returns whether the group is in 224.0.0.0/24, which every switch floods and no manager handles.
inline bool is_local(uint32_t group) { return (group & 0x00ffffffu) == 0x000000e0u; }

// Returns the joins and leaves in one IPv4 packet; empty if it is not a report.
inline std::vector<Wish> wishes_of(const unsigned char* packet, size_t bytes) {
    constexpr unsigned char report2 = 0x16, leave2 = 0x17, report3 = 0x22, igmp = 2;
    std::vector<Wish> wishes;
    if (bytes < 20 || packet[9] != igmp) return wishes;
    const size_t head = size_t{4} * (packet[0] & 15u);
    if (bytes < head + 8) return wishes;
    const unsigned char* message = packet + head;
    const unsigned char* const end = packet + bytes;
    const auto add = [&wishes](uint32_t group, bool join) {
        if (!is_local(group)) wishes.push_back({group, join});
    };
    if (message[0] == report2 || message[0] == leave2) add(word_at(message + 4), message[0] == report2);
    if (message[0] != report3) return wishes;
    int records = message[6] << 8 | message[7];
    for (const unsigned char* record = message + 8; records-- > 0 && end - record >= 8;) {
        const int sources = record[2] << 8 | record[3];
        const bool excludes = record[0] == 2 || record[0] == 4;
        if (excludes || sources == 0) add(word_at(record + 4), excludes);
        record += 8 + 4 * (sources + record[1]);
    }
    return wishes;
}

}  // namespace starling::lab
