// The messages between the daemons of a tree, and their encoding. Every decode() returns false if the bytes are not exactly one such
// message; `out` is unspecified then.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/tree/host_set.h"
#include "launch/tree/tree.h"

namespace starling::launch {

struct DaemonAddress {
    std::string address;  ///< IPv4 address in digits and dots
    uint16_t port = 0;
};

/// A daemon above, with the endpoints where it listens.
struct Ancestor {
    TreeHostId host = kRootHost;
    std::string name;
    std::vector<DaemonAddress> endpoints;
};

/// A host to be started. `attempt` distinguishes a node from an earlier one on the same host that was declared lost.
struct GrowHost {
    TreeHostId host = 0;
    uint32_t attempt = 1;
    std::string name;
};

/// The orders that a node reads from the agent's standard input.
struct Orders {
    TreeSettings settings;  ///< settings of the tree, with the key
    GrowHost self;
    std::vector<Ancestor> ancestors;  ///< daemons above the new node, the parent first, the root last
};

struct Attach {
    TreeHostId host = 0;
    uint32_t attempt = 1;
    uint64_t incarnation = 0;                                     ///< random number that identifies the node's process
    HostSet members;                                              ///< the node and all hosts below it, started or starting
    std::vector<std::pair<TreeHostId, uint32_t>> later_attempts;  ///< attempts of those members whose attempt is not 1
    std::vector<std::string> addresses;                           ///< the node's own addresses
};

struct TreeWelcome {
    std::vector<Ancestor> ancestors;  ///< list of the child's ancestors, the parent first
};

struct Grow {
    std::vector<GrowHost> hosts;
};

/// A message as it travels from host to host. Views point into `storage`.
struct Content {
    TreeHostId origin = kRootHost;
    uint64_t number = 0;  ///< ascending for each origin and urgency, so that receivers detect duplicates
    Urgency urgency = Urgency::control;
    bool internal = false;  ///< true: a message of the tree itself, a Report or an order to end
    bool gathered = false;  ///< true: the payload is a GatheredPayload; each hop adds it to its own pieces
    std::string storage;
    std::string_view payload;
    std::vector<std::pair<TreeHostId, std::string_view>> parts;  ///< each receiver's own part, ascending by host
};

/// The part of a message that differs between hops: its number on the connection, and its receivers at or below the next hop.
struct MessageHead {
    uint64_t edge_number = 0;
    HostSet to;
};

struct DoneRanges {
    Urgency urgency = Urgency::control;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;  ///< first and last number of each range
};

/// A report to the root about hosts.
struct Report {
    enum class HostReportKind : uint8_t {
        ready = 1,
        failed,
        lost,
        suspected,  ///< the connection to the hosts is broken or silent; a report `lost` or `sure` follows
        sure,       ///< the connection to the hosts works again
    };
    HostReportKind what = HostReportKind::ready;
    HostSet hosts;
    uint32_t attempt = 1;
    std::string text;  ///< facts about the host, or a sentence that describes the failure
};

std::string encode(const Orders& orders);
std::string encode(const Attach& message);
std::string encode(const std::vector<Ancestor>& ancestors);
std::string encode(const Grow& message);
std::string encode(const HostSet& hosts);
std::string encode(const DoneRanges& message);
std::string encode(const Report& report);

bool decode(std::string_view bytes, Orders& out);
bool decode(std::string_view bytes, Attach& out);
bool decode(std::string_view bytes, std::vector<Ancestor>& out);
bool decode(std::string_view bytes, Grow& out);
bool decode(std::string_view bytes, HostSet& out);
bool decode(std::string_view bytes, DoneRanges& out);
bool decode(std::string_view bytes, Report& out);

/// Encode head and tail of a message frame's body, which is head, payload and tail. The tail holds the parts of the receivers.
std::string encode_head(const MessageHead& head, const Content& content);
std::string encode_tail(const MessageHead& head, const Content& content);
/// Decodes a message and takes ownership of its bytes.
bool decode_message(std::string bytes, MessageHead& head, Content& content);

/// Returns "starling-node 1 <version>", the line that both sides send first. All future versions must be able to read it.
std::string greeting_line(std::string_view version);
/// Extracts the version from such a line (without its newline). Returns false for other lines.
bool parse_greeting(std::string_view line, std::string& version);

}  // namespace starling::launch
