// Datagrams and notes that a multicast group receives: arbitrary bytes, and well-formed ones with false contents. The decoder must not read
// past them. The group must deliver only received bytes, and its timers must end.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>

#include "multicast/group.h"

using namespace starling;
using namespace starling::multicast;

namespace {

constexpr uint32_t kMembers = 5;

class Target final : public GroupEnvironment {
  public:
    Target() : group(names(), 1, {99, 1000, 256, 5'000'000'000}, *this, desk) {
        receive.memory = memory, receive.bytes = sizeof memory;
        desk.post(receive, {7, 5, 1, 0});
        group.apply(GroupEvent::want, now);
    }
    static std::vector<MemberName> names() {
        std::vector<MemberName> all;
        for (uint32_t i = 0; i < kMembers; ++i) all.push_back({7, i});
        return all;
    }
    bool to_group(const GroupDatagramHeader&, const std::byte* body, uint32_t bytes) override { return touch(body, bytes); }
    bool to_member(uint32_t member, const GroupDatagramHeader&, const std::byte* body, uint32_t bytes) override {
        if (member >= kMembers) std::abort();
        return touch(body, bytes);
    }
    void note(uint32_t member, const Note& note) override {
        if (member >= kMembers || !check(note, kMembers)) std::abort();
    }
    bool join() override { return true; }
    void leave() override {}
    void flush() override {}
    void report_unreachable() override {}
    /// Reads every byte, so that the sanitizer checks them.
    bool touch(const std::byte* bytes, size_t count) {
        for (size_t i = 0; i < count; ++i) sum = sum + static_cast<unsigned>(bytes[i]);
        return true;
    }

    uint64_t now = 1'000'000'000;
    ReceiveQueue desk;
    std::byte memory[700];
    MulticastReceive receive;
    MulticastGroup group;
    volatile unsigned sum = 0;
};

/// The bytes of the fuzzer's input that describe one datagram or note.
struct Recipe {
    uint8_t what, liar, word, sender, flags, epoch, pause, context;
    uint32_t serial, floor, fragment, bytes;
    uint64_t mask;
};

void take(Target& target, const std::string& bytes, bool single, uint32_t from) {
    const auto copy = std::make_unique<std::byte[]>(bytes.size());
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    GroupDatagram datagram;
    if (!decode(copy.get(), bytes.size(), kMembers, datagram)) return;
    if (datagram.bytes > 0) target.touch(datagram.body, datagram.bytes);
    if (single)
        target.group.on_single(from, datagram, target.now);
    else
        target.group.on_datagram(datagram, target.now);
}

std::string datagram_of(const Recipe& recipe) {
    GroupDatagramHeader head{};
    head.magic = GroupDatagramHeader::kMagic, head.version = GroupDatagramHeader::kVersion;
    head.word = static_cast<Word>(recipe.liar & 1 ? recipe.word : recipe.word % 5 + 1);
    head.sender = recipe.liar & 2 ? recipe.sender : static_cast<uint16_t>(recipe.sender % kMembers);
    head.flags = recipe.flags & 1;
    head.epoch = recipe.liar & 4 ? recipe.epoch : 50;
    head.floor = recipe.liar & 8 ? recipe.floor : recipe.floor % 4;
    head.serial = recipe.liar & 16 ? recipe.serial : head.floor + recipe.serial % 16;
    head.context = recipe.context % 3 + 4;
    head.call = recipe.serial % 5;
    head.fragment_bytes = 256;
    head.bytes = recipe.liar & 32 ? uint64_t{recipe.bytes} << (recipe.liar & 128 ? 8 : 0) : recipe.bytes % 2000;
    const Fragmentation message{head.bytes, head.fragment_bytes};
    const uint64_t fragments = message.count();
    head.fragment = recipe.liar & 64 ? recipe.fragment : static_cast<uint32_t>(recipe.fragment % fragments);
    std::string out(reinterpret_cast<const char*>(&head), header_bytes(head));
    if (head.word == Word::data) out.append(head.fragment < fragments ? message.length(head.fragment) : recipe.bytes % 300, 'x');
    return out;
}

void take_note(Target& target, const Recipe& recipe, uint32_t from) {
    Note note{};
    note.kind = static_cast<NoteKind>(recipe.word % 9);
    note.urgent = recipe.flags & 1;
    note.sender = recipe.liar & 2 ? recipe.sender : static_cast<uint16_t>(recipe.sender % kMembers);
    note.member = recipe.liar & 4 ? recipe.epoch : static_cast<uint16_t>(recipe.epoch % kMembers);
    note.epoch = recipe.liar & 8 ? 1000 : 50;
    note.serial = recipe.liar & 16 ? recipe.serial : recipe.serial % 16;
    note.fragment = recipe.fragment;
    note.mask = recipe.mask;
    if (check(note, kMembers)) target.group.on_note(from, note, target.now);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Target target;
    take(target, std::string(reinterpret_cast<const char*>(data), size), false, 0);
    MulticastSend sends[4];
    uint64_t value[100] = {};
    int sent = 0;
    for (; size >= sizeof(Recipe); data += sizeof(Recipe), size -= sizeof(Recipe)) {
        Recipe recipe;
        std::memcpy(&recipe, data, sizeof recipe);
        const uint32_t from = recipe.what / 8 % kMembers == 1 ? 0 : recipe.what / 8 % kMembers;
        if (recipe.what % 8 == 0 && sent < 4 && target.group.may_send(sizeof value))
            target.group.start(sends[sent], 5, static_cast<uint64_t>(sent), value, sizeof value, target.now), ++sent;
        if (recipe.what % 8 == 1)
            target.group.on_out(from, recipe.flags & 1, target.now);
        else if (recipe.what % 8 < 4)
            take_note(target, recipe, from);
        else
            take(target, datagram_of(recipe), recipe.what % 8 == 4, from);
        target.now += recipe.pause * 1'000'000ull;
        if (target.group.deadline() <= target.now) target.group.run(target.now);
    }
    // After the death of all other members the group's timers must end.
    for (uint32_t i = 0; i < kMembers; ++i) target.group.on_out(i, true, target.now);
    for (int i = 0; i < 2000 && target.group.deadline() != UINT64_MAX; ++i) {
        target.now = std::max(target.now, target.group.deadline());
        target.group.run(target.now);
    }
    if (target.group.deadline() != UINT64_MAX || !target.group.outgoing().drained()) std::abort();
    return 0;
}

const std::string* fuzz_seeds(size_t& count) {
    static std::string seeds[3];
    uint32_t state = 1;
    const auto random = [&state] { return (state = state * 1664525 + 1013904223) >> 16; };
    for (std::string& seed : seeds)
        for (int i = 0; i < 12; ++i) {
            Recipe recipe{};
            recipe.what = static_cast<uint8_t>(random()), recipe.word = static_cast<uint8_t>(random() % 8);
            recipe.sender = static_cast<uint8_t>(random()), recipe.pause = static_cast<uint8_t>(random() % 4);
            recipe.context = static_cast<uint8_t>(random()), recipe.serial = random(), recipe.fragment = random();
            recipe.bytes = random(), recipe.flags = static_cast<uint8_t>(random() % 2), recipe.mask = random();
            seed.append(reinterpret_cast<const char*>(&recipe), sizeof recipe);
        }
    count = std::size(seeds);
    return seeds;
}
