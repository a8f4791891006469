#include "window/owner.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include "base/error.h"
#include "base/immortal.h"
#include "base/state.h"
#include "window/access.h"
#include "window/packets.h"

namespace starling::window {

namespace {

struct Exposed {
    std::byte* base;  ///< null: the place is free
    Exposure exposure;
};

/// What an access comes to, until there is room to say so.
struct Answer {
    link::Peer* peer;
    Operation operation;
    packet::Access header;
    uint32_t exposure;  ///< of a get: read when the answer goes out, if it is still there
    uint64_t key;
    uint64_t offset;
    uint32_t bytes;
    uint64_t old;
};

STARLING_STATE Immortal<std::vector<Exposed>> exposed_storage;
constinit auto& exposed = exposed_storage.value;
STARLING_STATE std::deque<Answer>* answers = nullptr;

Exposed* find(uint32_t id, uint64_t key) {
    if (id >= exposed.size() || !exposed[id].base || exposed[id].exposure.key != key) return nullptr;
    return &exposed[id];
}

/// The memory of an access, null if it must be refused.
std::byte* memory_of(uint32_t id, uint64_t key, uint64_t offset, uint64_t bytes) {
    const Exposed* at = find(id, key);
    if (!at || offset > at->exposure.bytes || bytes > at->exposure.bytes - offset) return nullptr;
    return at->base + offset;
}

template <class Word>
Word changed(Update update, Word old, Word operand) {
    using Signed = std::make_signed_t<Word>;
    switch (update) {
        case Update::add:
            return old + operand;
        case Update::bit_and:
            return old & operand;
        case Update::bit_or:
            return old | operand;
        case Update::bit_xor:
            return old ^ operand;
        case Update::least:
            return static_cast<Signed>(operand) < static_cast<Signed>(old) ? operand : old;
        case Update::most:
            return static_cast<Signed>(operand) > static_cast<Signed>(old) ? operand : old;
        case Update::swap:
        case Update::compare_swap:
            return operand;
        case Update::fetch:
            break;
    }
    return old;
}

// The owner's program may change the word meanwhile, with instructions of its own.
template <class Word>
uint64_t apply(std::byte* memory, const AccessPacket& packet) {
    auto* word = reinterpret_cast<Word*>(memory);
    const auto update = static_cast<Update>(packet.update);
    const auto operand = static_cast<Word>(packet.operand), compare = static_cast<Word>(packet.compare);
    Word old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (update != Update::fetch && (update != Update::compare_swap || old == compare)) {
        if (__atomic_compare_exchange_n(word, &old, changed(update, old, operand), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            break;
    }
    return old;
}

bool try_answer(const Answer& answer) {
    const bool data = answer.operation == Operation::get_data, value = answer.operation == Operation::update_done;
    const std::byte* memory = data ? memory_of(answer.exposure, answer.key, answer.offset, answer.bytes) : nullptr;
    const Operation operation = data && !memory ? Operation::refused : answer.operation;
    const uint32_t bytes = memory ? answer.bytes : value ? sizeof answer.old : 0;
    link::Slot slot;
    if (!link::reserve(*answer.peer, bytes, slot)) return false;
    write_header(*slot.header, operation, answer.header);
    if (memory) std::memcpy(slot.payload, memory, bytes);
    if (value) std::memcpy(slot.payload, &answer.old, bytes);
    link::commit(*answer.peer, slot, bytes);
    return true;
}

void reply(const Answer& answer) {
    if (!answers) answers = new std::deque<Answer>;
    if (answers->empty() && try_answer(answer)) return;
    answers->push_back(answer);
}

void carry_out(link::Peer& peer, const link::Packet& packet, const AccessPacket& access) {
    const auto operation = static_cast<Operation>(packet.header.operation);
    const auto [generation, serial, offset] = packet.header.access;
    Answer answer{&peer,
                  Operation::refused,
                  {generation, serial, access.memory_offset},
                  access.exposure,
                  access.key,
                  offset,
                  access.bytes,
                  0};
    std::byte* memory = memory_of(access.exposure, access.key, offset, access.bytes);
    const uint32_t data = packet.header.bytes - static_cast<uint32_t>(sizeof access);
    if (memory && operation == Operation::put && data == access.bytes) {
        std::memcpy(memory, packet.payload + sizeof access, data);
        answer.operation = Operation::put_done;
    } else if (memory && operation == Operation::get && access.bytes <= link::payload_limit(peer)) {
        answer.operation = Operation::get_data;
    } else if (memory && operation == Operation::update && (access.bytes == 4 || access.bytes == 8) &&
               reinterpret_cast<uintptr_t>(memory) % access.bytes == 0) {
        answer.old = access.bytes == 4 ? apply<uint32_t>(memory, access) : apply<uint64_t>(memory, access);
        answer.operation = Operation::update_done;
    }
    reply(answer);
}

}  // namespace

Exposure expose(void* base, uint64_t bytes) {
    start_accesses();
    Exposure exposure{0, bytes, 0, 0};
    while (exposure.key == 0 && getrandom(&exposure.key, sizeof exposure.key, 0) < 0) {}
    const auto place = std::find_if(exposed.begin(), exposed.end(), [](const Exposed& e) { return !e.base; });
    exposure.id = static_cast<uint32_t>(place - exposed.begin());
    const Exposed entry{static_cast<std::byte*>(base), exposure};
    if (place == exposed.end())
        exposed.push_back(entry);
    else
        *place = entry;
    return exposure;
}

void withdraw(const Exposure& exposure) {
    if (Exposed* at = find(exposure.id, exposure.key)) at->base = nullptr;
}

void on_access_packet(link::Peer& peer, const link::Packet& packet) {
    if (static_cast<Operation>(packet.header.operation) >= Operation::put_done) return on_answer(peer, packet);
    AccessPacket access;
    if (packet.header.bytes < sizeof access) return;
    std::memcpy(&access, packet.payload, sizeof access);
    carry_out(peer, packet, access);
}

bool poll_answers() {
    if (!answers) return false;
    bool any = false;
    while (!answers->empty() && (answers->front().peer->dead || try_answer(answers->front()))) {
        answers->pop_front();
        any = true;
    }
    return any;
}

}  // namespace starling::window
