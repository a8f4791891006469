// What the daemons of a tree say to each other, as bytes. Every decode() gives false for what is not exactly one such
// message; `out` is then unspecified.
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

struct Endpoint {
    std::string address;  ///< IPv4, in digits and dots
    uint16_t port = 0;
};

/// A daemon above, and where it listens.
struct Ancestor {
    HostId host = kRootHost;
    std::string name;
    std::vector<Endpoint> endpoints;
};

/// A host to be started. The attempt tells a node from an earlier one on the same host that was given up.
struct GrowHost {
    HostId host = 0;
    uint32_t attempt = 1;
    std::string name;
};

/// What a node is told by the agent's standard input.
struct Orders {
    TreeSettings settings;  ///< with the key
    GrowHost self;
    std::vector<Ancestor> ancestors;  ///< the parent first, the root last
};

struct Attach {
    HostId host = 0;
    uint32_t attempt = 1;
    uint64_t incarnation = 0;                                 ///< random: whether it is the same process
    HostSet members;                                          ///< itself and all below it, started or being started
    std::vector<std::pair<HostId, uint32_t>> later_attempts;  ///< of members whose attempt is not 1
};

struct Welcome {
    std::vector<Ancestor> ancestors;  ///< of the child
};

struct Grow {
    std::vector<GrowHost> hosts;
};

/// What is carried from host to host. Views point into `storage`.
struct Content {
    HostId origin = kRootHost;
    uint64_t number = 0;  ///< ascending for each origin and urgency: a receiver knows what it has had
    Urgency urgency = Urgency::control;
    bool internal = false;  ///< between the trees themselves: a Report, or an order to end
    bool gathered = false;  ///< the payload is a Gathered: each hop on the way to the root adds it to its own
    std::string storage;
    std::string_view payload;
    std::vector<std::pair<HostId, std::string_view>> parts;  ///< ascending by host
};

/// The part of a message that differs from hop to hop: its number on the connection, and for whom of those
/// below it is.
struct MessageHead {
    uint64_t edge_number = 0;
    HostSet to;
};

struct DoneRanges {
    Urgency urgency = Urgency::control;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;  ///< first and last
};

/// To the root, about a host.
struct Report {
    enum class What : uint8_t {
        ready = 1,
        failed,
        lost,
        doubtful,  ///< the way to them is broken or silent: they are lost before long, or
        sure,      ///< found again
    };
    What what = What::ready;
    HostSet hosts;
    uint32_t attempt = 1;
    std::string text;  ///< facts, or a sentence
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

/// A message frame's body is head, payload and tail in a row; the tail is the parts of those it is for.
std::string encode_head(const MessageHead& head, const Content& content);
std::string encode_tail(const MessageHead& head, const Content& content);
/// Takes the bytes over.
bool decode_message(std::string bytes, MessageHead& head, Content& content);

/// "starling-node 1 <version>": what both sides begin with, readable for every version to come.
std::string greeting_line(std::string_view version);
/// The version of such a line (without its end); false if it is another line.
bool parse_greeting(std::string_view line, std::string& version);

}  // namespace starling::launch
