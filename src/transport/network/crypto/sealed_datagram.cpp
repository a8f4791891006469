#include "transport/network/crypto/sealed_datagram.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"

namespace starling::network {

namespace {

DatagramHeader header_of(const std::byte* datagram) {
    DatagramHeader header;
    std::memcpy(&header, datagram, sizeof header);
    return header;
}

/// Writes the version, length and flags into the header's unencrypted part.
void write_header(std::byte* datagram, uint8_t version, uint32_t bytes, uint8_t flags) {
    std::memcpy(datagram + offsetof(DatagramHeader, flags), &flags, sizeof flags);
    std::memcpy(datagram + offsetof(DatagramHeader, version), &version, sizeof version);
    std::memcpy(datagram + offsetof(DatagramHeader, bytes), &bytes, sizeof bytes);
}

}  // namespace

SealKey pair_key(const Cipher& cipher, const PeerName& one, const job::NetworkSecret& secret_of_one, const PeerName& other,
                 const job::NetworkSecret& secret_of_other) {
    const PeerName* names[] = {&one, &other};
    job::NetworkSecret secrets[] = {secret_of_one, secret_of_other};
    if (std::pair(other.job, other.rank) < std::pair(one.job, one.rank)) {
        std::swap(names[0], names[1]);
        std::swap(secrets[0], secrets[1]);
    }
    const Bytes texts[] = {bytes_of(names[0]->job), bytes_of(names[0]->rank), bytes_of(names[1]->job),
                           bytes_of(names[1]->rank)};
    return cipher.derive(std::as_bytes(std::span(secrets)), "starling pair", texts);
}

bool ReplayWindow::holds(uint64_t number) const {
    if (number > last_) return false;
    if (last_ - number >= kNumbers) return true;
    return bits_[number % kNumbers / 64] >> number % 64 & 1;
}

void ReplayWindow::add(uint64_t number) {
    if (number > last_) {
        // Clear the bits of the numbers between the last one and this one, which have not arrived yet. The old numbers at these bits have
        // left the window.
        if (number - last_ >= kNumbers) {
            std::fill(std::begin(bits_), std::end(bits_), 0);
        } else {
            for (uint64_t n = last_ + 1; n < number; ++n) bits_[n % kNumbers / 64] &= ~(uint64_t{1} << n % 64);
        }
        last_ = number;
    }
    bits_[number % kNumbers / 64] |= uint64_t{1} << number % 64;
}

DatagramLock::DatagramLock(const Cipher& cipher, const SealKey& pair, const PeerName& self, const PeerName& peer)
    : cipher_(cipher), pair_(pair), self_(self), peer_(peer), salt_(draw_random_number()), key_(key_of(suite_, self, salt_)) {}

// Derives the key of one direction: it depends on the sender's name. Each cipher has its own key, so the numbers continue when a sender
// changes to the other cipher.
ReadyKey DatagramLock::key_of(Suite suite, const PeerName& from, uint64_t salt) const {
    const Bytes texts[] = {bytes_of(from.job), bytes_of(from.rank), bytes_of(salt)};
    const char* const purpose = suite == Suite::aes ? "starling datagrams AES" : "starling datagrams";
    return cipher_.prepare(suite, cipher_.derive(bytes_of(pair_), purpose, texts));
}

void DatagramLock::seal(std::byte* datagram, uint32_t bytes) {
    const auto flags = static_cast<uint8_t>(header_of(datagram).flags | (cipher_.has_aes ? kOpensAes : 0));
    write_header(datagram, kSealedVersion[static_cast<int>(suite_)], bytes + kSealBytes, flags);
    SealTrailer trailer{salt_, ++number_, {}};
    cipher_.seal(key_, trailer.number, {datagram, kClearHead}, {datagram + kClearHead, bytes - kClearHead}, trailer.tag);
    std::memcpy(datagram + bytes, &trailer, sizeof trailer);
}

DatagramLock::Opened DatagramLock::open(std::byte* datagram, uint32_t bytes, bool& is_new) {
    const uint32_t plain = bytes - kSealBytes;
    SealTrailer trailer;
    std::memcpy(&trailer, datagram + plain, sizeof trailer);
    const DatagramHeader shown = header_of(datagram);
    const Suite suite = shown.version == kSealedVersion[static_cast<int>(Suite::aes)] ? Suite::aes : Suite::chacha;
    is_new = trailer.salt != their_salt_;
    if (!is_new && window_.holds(trailer.number)) return Opened::stale;
    if (trailer.salt == 0 || (suite == Suite::aes && !cipher_.has_aes)) return Opened::unauthenticated;
    ReadyKey fresh;
    const bool other_key = is_new || suite != their_suite_;
    if (other_key) fresh = key_of(suite, peer_, trailer.salt);
    if (!cipher_.open(other_key ? fresh : their_key_, trailer.number, {datagram, kClearHead},
                      {datagram + kClearHead, plain - kClearHead}, trailer.tag))
        return Opened::unauthenticated;
    write_header(datagram, DatagramHeader::kVersion, plain, static_cast<uint8_t>(shown.flags & ~kOpensAes));
    // A sender that restarts uses a later epoch than ever before. So datagrams sealed with an earlier salt are rejected, and can't make
    // this process forget which numbers it has received.
    const uint64_t epoch = header_of(datagram).epoch;
    if (is_new) {
        if (epoch <= their_epoch_) return Opened::stale;
        their_salt_ = trailer.salt;
        window_ = {};
    }
    if (other_key) {
        their_suite_ = suite;
        their_key_ = std::move(fresh);
    }
    if (suite_ == Suite::chacha && cipher_.has_aes && shown.flags & kOpensAes) {
        suite_ = Suite::aes;
        key_ = key_of(suite_, self_, salt_);
    }
    their_epoch_ = std::max(their_epoch_, epoch);
    window_.add(trailer.number);
    return Opened::yes;
}

bool may_be_sealed(const std::byte* datagram, uint32_t bytes, uint64_t key, uint32_t rank) {
    if (bytes < sizeof(DatagramHeader) + kSealBytes || bytes > kMostFrame) return false;
    const DatagramHeader header = header_of(datagram);
    return header.magic == DatagramHeader::kMagic && std::ranges::count(kSealedVersion, header.version) != 0 &&
           header.bytes == bytes && header.key == key && header.target_rank == rank;
}

PeerName sender_of(const std::byte* datagram) {
    const DatagramHeader header = header_of(datagram);
    return {header.job, header.rank};
}

}  // namespace starling::network
