// Input of a launcher's or daemon's control socket: frames, and every message in them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "control/control_protocol.h"
#include "control/plan_reply.h"
#include "control/profile_report.h"
#include "job/environment.h"

using namespace starling::job;
using namespace starling::control;

namespace {

// A payload that decodes as a message must be that message's encoding, byte for byte: the decoder adds nothing.
template <class Message>
void check(std::string_view payload) {
    Message message;
    if (decode(payload, message) && encode(message) != payload) std::abort();
}

void check_address(std::string text) {
    JobAddress address, again;
    if (!parse_address(text.c_str(), address)) return;
    if (!parse_address(to_string(address).c_str(), again) || !(again == address)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const size_t step = data[0] == 0 ? 1 : data[0];  // size of the portions into which the stream is cut
    FrameDecoder decoder(1 << 16);
    ControlFrame frame;
    for (size_t at = 0; at < bytes.size(); at += step) {
        decoder.feed(bytes.substr(at, step));
        while (decoder.next(frame) == FrameDecoder::ControlDecodeResult::frame) {
            check<ControlHello>(frame.payload);
            check<SpawnRequest>(frame.payload);
            check<SpawnReply>(frame.payload);
            check<NameRequest>(frame.payload);
            check<NameReply>(frame.payload);
            check<DisconnectNotice>(frame.payload);
            check<ProfileReport>(frame.payload);
            check<PlanReply>(frame.payload);
            check_address(frame.payload);
        }
    }
    return 0;
}

static ProfileReport::PhaseRecord phase_of_all() {
    ProfileReport::PhaseRecord phase;
    phase.name = "step";
    phase.peers = {{1, 2, {3, 4, 5}, {6, 7, 8}, 9, 300}};
    phase.collectives = {{"a+0x1", "bcast", "node", 16, 2, 1, true, 3, 4, 5, 6.5}};
    phase.waits = {{"a+0x2", "MPI_Recv", {7, 8, 9, 10}}};
    phase.connections = {{1, 2, 3, true}};
    return phase;
}

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        std::string(1, '\x07') + encode_frame(MessageKind::hello, encode(ControlHello{1, 2, {3, 4}, 5})) +
            encode_frame(MessageKind::spawn,
                         encode(SpawnRequest{"blob", {{{"./a", "b"}, 2, {{"wdir", "/tmp"}}}, {{"c"}, 1, {}}}})),
        std::string(1, '\xff') + encode_frame(MessageKind::reply, encode(SpawnReply{53, "text", {1, 2, 3}, {0, 53}})),
        std::string(1, '\x01') + encode_frame(MessageKind::publish, encode(NameRequest{1, "service", "port"})) +
            encode_frame(MessageKind::reply, encode(NameReply{38, "text", ""})),
        std::string(1, '\x40') + encode_frame(MessageKind::disconnect, encode(DisconnectNotice{1, 2})) +
            encode_frame(MessageKind::lookup, "12:3:abcdef"),
        std::string(1, '\x11') + encode_frame(MessageKind::profile, encode(ProfileReport{true, {phase_of_all()}})),
        std::string(1, '\x20') + encode_frame(MessageKind::plan, "") +
            encode_frame(MessageKind::reply,
                         encode(PlanReply{{4, 8, 1024}, {{"step", 1, 3, {{2, 9}, {1, 4}}}, {"", 1, kForever, {}}}})),
    };
    count = sizeof seeds / sizeof seeds[0];
    return seeds;
}
