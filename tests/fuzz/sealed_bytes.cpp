// Input of a process that encrypts: arbitrary datagrams and records, and valid ones that were changed. Only bytes that were sealed may be
// opened, nothing outside of the input may be read or written, and valid ones must still be opened.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "transport/network/crypto/sealed_datagram.h"
#include "transport/network/tcp/records.h"

using namespace starling::network;

namespace {

constexpr PeerName kHere{7, 0}, kThere{7, 1};
const SealKey kPair{{1, 2, 3}};

const Cipher& cipher() {
    static std::unique_ptr<Cipher> loaded;
    if (!loaded && Cipher::load(loaded) != 0) std::abort();
    return *loaded;
}

/// Copies as from a socket: nothing after the copy is readable.
std::unique_ptr<std::byte[]> copy_of(const std::string& bytes) {
    auto copy = std::make_unique<std::byte[]>(bytes.size());
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    return copy;
}

std::string sealed_datagram(DatagramLock& lock, size_t stream) {
    DatagramHeader header{};
    header.magic = DatagramHeader::kMagic;
    header.version = DatagramHeader::kVersion;
    header.bytes = static_cast<uint32_t>(sizeof header + stream);
    header.key = 11;
    header.job = kThere.job;
    header.rank = kThere.rank;
    header.epoch = 1000;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.resize(header.bytes + kSealBytes, 's');
    lock.seal(reinterpret_cast<std::byte*>(bytes.data()), header.bytes);
    return bytes;
}

bool opens(DatagramLock& lock, const std::string& bytes) {
    const auto copy = copy_of(bytes);
    const auto size = static_cast<uint32_t>(bytes.size());
    bool is_new = false;
    if (!may_be_sealed(copy.get(), size, 11, kHere.rank) || sender_of(copy.get()) != kThere) return false;
    if (lock.open(copy.get(), size, is_new) != DatagramLock::Opened::yes) return false;
    Datagram datagram;
    if (!decode(copy.get(), size - kSealBytes, datagram)) std::abort();  // only correctly sealed data is opened
    return true;
}

void try_datagrams(const std::string& input) {
    DatagramLock here(cipher(), kPair, kHere, kThere), there(cipher(), kPair, kThere, kHere);
    if (opens(here, input)) std::abort();
    const std::string good = sealed_datagram(there, input.size() / 8 % 200 * 8);
    std::string bad = good;
    for (size_t i = 0; i + 2 < input.size() && i < 60; i += 3) {
        const size_t at = (static_cast<uint8_t>(input[i]) << 8 | static_cast<uint8_t>(input[i + 1])) % bad.size();
        bad[at] = static_cast<char>(bad[at] ^ input[i + 2]);
    }
    if (bad != good && opens(here, bad)) std::abort();
    if (!opens(here, good) || opens(here, good)) std::abort();
}

/// Opens the records in portions of `portion` bytes; returns their texts.
std::string open_records(Suite suite, const std::string& bytes, size_t portion) {
    RecordOpener opener(cipher(), cipher().prepare(suite, kPair));
    std::string got;
    for (size_t at = 0; at < bytes.size();) {
        const std::span<std::byte> room = opener.room();
        const size_t part = std::min({portion, room.size(), bytes.size() - at});
        if (part == 0) std::abort();
        std::memcpy(room.data(), bytes.data() + at, part);
        opener.arrived(part);
        at += part;
        Bytes text;
        RecordOpener::RecordReadResult result;
        while ((result = opener.next(text)) == RecordOpener::RecordReadResult::text)
            got.append(reinterpret_cast<const char*>(text.data()), text.size());
        if (result == RecordOpener::RecordReadResult::garbage) return got;
    }
    return got;
}

void try_records(const std::string& input) {
    const Suite suite = cipher().has_aes && input.size() % 2 ? Suite::aes : Suite::chacha;
    const size_t portion = input.empty() ? 1 : static_cast<uint8_t>(input[0]) + size_t{1};
    if (!open_records(suite, input, portion).empty()) std::abort();
    RecordSealer sealer(cipher(), cipher().prepare(suite, kPair));
    std::string wire;
    for (size_t done = 0; done < input.size();) {
        const size_t most = std::min(input.size() - done, portion);
        const iovec part{const_cast<char*>(input.data()) + done, most};
        done += sealer.seal(&part, 1, 0);
        wire.append(reinterpret_cast<const char*>(sealer.pending().data()), sealer.pending().size());
        sealer.wrote(sealer.pending().size());
    }
    if (open_records(suite, wire, portion) != input) std::abort();
    if (wire.empty()) return;
    const size_t at = input.size() * 31 % wire.size();
    wire[at] = static_cast<char>(wire[at] ^ 4);
    const std::string got = open_records(suite, wire, portion);
    if (got.size() >= input.size() || input.compare(0, got.size(), got) != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string input(reinterpret_cast<const char*>(data), size);
    try_datagrams(input);
    try_records(input);
    return 0;
}

const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        [] {
            DatagramLock other(cipher(), SealKey{{9}}, kThere, kHere);
            return sealed_datagram(other, 64);
        }(),
        std::string("\5\0\0\0", 4) + "hello and a tag of sixteen bytes",
    };
    count = std::size(seeds);
    return seeds;
}
