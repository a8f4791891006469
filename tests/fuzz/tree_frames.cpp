// Input of a daemon's port: the handshake, frames, and every message in them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launch/tree/frame.h"
#include "launch/tree/gathering.h"
#include "launch/tree/handshake.h"
#include "launch/tree/messages.h"

using namespace starling::launch;

namespace {

// A payload that decodes as a message must be that message's encoding, byte for byte: the decoder adds nothing.
template <class Message>
void check(std::string_view bytes) {
    Message message;
    if (decode(bytes, message) && encode(message) != bytes) std::abort();
}

void check_orders(std::string_view bytes) {
    // decode() clamps the limits in an order. So the input may differ from the first encoding, but the second encoding must equal the
    // first.
    Orders orders, again;
    if (!decode(bytes, orders)) return;
    const std::string first = encode(orders);
    if (!decode(first, again) || encode(again) != first) std::abort();
}

void check_message(std::string_view bytes) {
    MessageHead head;
    Content content;
    if (!decode_message(std::string(bytes), head, content)) return;
    const std::string again = encode_head(head, content) + std::string(content.payload) + encode_tail(head, content);
    if (again != bytes) std::abort();
}

void check_all(std::string_view bytes) {
    check_orders(bytes);
    check_message(bytes);
    check<Attach>(bytes);
    check<std::vector<Ancestor>>(bytes);
    check<Grow>(bytes);
    check<HostSet>(bytes);
    check<DoneRanges>(bytes);
    check<Report>(bytes);
    check<GatheredPayload>(bytes);
    std::string version;
    parse_greeting(bytes, version);
}

// The input cannot prove a key that it does not contain, and no frame is accepted that was not sealed with the right key.
void check_stream(std::string_view bytes, size_t step) {
    static const TreeKey key = make_key();
    Handshake parent(Handshake::HandshakeRole::parent, key), child(Handshake::HandshakeRole::child, key);
    FrameOpener opener(FrameKey{{1, 2, 3}, (bytes.size() & 1) != 0});
    for (size_t at = 0; at < bytes.size(); at += step) {
        std::string answer, body;
        TreeFrameKind kind{};
        std::string_view part = bytes.substr(at, step);
        if (parent.feed(part, answer) == Handshake::HandshakeState::proved) std::abort();
        part = bytes.substr(at, step);
        if (child.feed(part, answer) == Handshake::HandshakeState::proved) std::abort();
        part = bytes.substr(at, step);
        if (opener.feed(part, kind, body) == FrameOpener::FrameOpenResult::frame) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    check_all(bytes);
    check_stream(bytes, data[0] == 0 ? 1 : data[0]);
    return 0;
}

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string none(1, '\x40');
    static const auto message = [] {
        Content content;
        content.storage = "payloadAB";
        const std::string_view all(content.storage);
        content.payload = all.substr(0, 7);
        content.parts = {{2, all.substr(7, 1)}, {9, all.substr(8, 1)}};
        const MessageHead head{5, HostSet::of({2, 9})};
        return encode_head(head, content) + std::string(content.payload) + encode_tail(head, content);
    };
    static const std::vector<Ancestor> ancestors{{0, "root", {{"10.0.0.1", 4711}, {"10.1.0.1", 4712}}}};
    static const auto orders = [] {
        Orders o;
        o.settings.agent = {"ssh", "-x"};
        o.settings.program = "/opt/starling/bin/starlingd";
        o.self = {3, 1, "lab3"};
        o.ancestors = ancestors;
        return encode(o);
    };
    static const std::string seeds[] = {
        none + message(),
        none + orders(),
        none + encode(Attach{4, 2, 77, HostSet::of({4, 5, 6, 9}), {{4, 2}}, {"10.0.0.1"}}),
        none + encode(ancestors),
        none + encode(Grow{{{1, 1, "a"}, {2, 3, "b"}}}),
        none + encode(HostSet::of({1, 2, 3, 7, 8})),
        none + encode(DoneRanges{Urgency::bulk, {{1, 4}, {7, 7}}}),
        none + encode(Report{Report::HostReportKind::lost, HostSet::of({3, 4}), 1, "why"}),
        none + Handshake(Handshake::HandshakeRole::child, make_key()).opening() + std::string(80, 'x'),
        none + FrameSealer(FrameKey{{1, 2, 4}}).seal(TreeFrameKind::message, message()),
        none + FrameSealer(FrameKey{{1, 2, 4}, true}).seal(TreeFrameKind::message, message()),
        none + greeting_line("0.1.0"),
    };
    count = sizeof seeds / sizeof seeds[0];
    return seeds;
}
