#include "transport/network/crypto/group_encryption.h"

#include <cstring>

#include "base/random.h"

namespace starling::network {

namespace {
constexpr size_t kClear = sizeof(uint64_t);  ///< bytes at the beginning of a datagram that are not encrypted: the group's key
}

GroupEncryption::GroupEncryption(const Cipher& cipher, const uint64_t (&secret)[4])
    : cipher_(cipher), salt_(draw_random_number()) {
    static_assert(sizeof secret == sizeof secret_.bytes);
    std::memcpy(secret_.bytes, secret, sizeof secret);
    key_ = key_of(salt_);
}

// Derives the key of a sender. Salts differ between senders, so no two senders use a number with the same key.
ReadyKey GroupEncryption::key_of(uint64_t salt) const {
    const Bytes texts[] = {bytes_of(salt)};
    return cipher_.prepare(Suite::chacha, cipher_.derive(bytes_of(secret_), "starling group", texts));
}

void GroupEncryption::seal(std::byte* datagram, size_t bytes) {
    SealTrailer trailer{salt_, ++number_, {}};
    cipher_.seal(key_, trailer.number, {datagram, kClear}, {datagram + kClear, bytes - kClear}, trailer.tag);
    std::memcpy(datagram + bytes, &trailer, sizeof trailer);
}

bool GroupEncryption::open(std::byte* datagram, size_t bytes) {
    if (bytes <= kClear + kSealBytes) return false;
    const size_t plain = bytes - kSealBytes;
    SealTrailer trailer;
    std::memcpy(&trailer, datagram + plain, sizeof trailer);
    const auto known = senders_.find(trailer.salt);
    if (known != senders_.end() && known->second.window.holds(trailer.number)) return false;
    SenderState fresh;
    if (known == senders_.end()) fresh.key = key_of(trailer.salt);
    const ReadyKey& key = known == senders_.end() ? fresh.key : known->second.key;
    if (!cipher_.open(key, trailer.number, {datagram, kClear}, {datagram + kClear, plain - kClear}, trailer.tag)) return false;
    SenderState& sender =
        known == senders_.end() ? senders_.emplace(trailer.salt, std::move(fresh)).first->second : known->second;
    sender.window.add(trailer.number);
    return true;
}

}  // namespace starling::network
