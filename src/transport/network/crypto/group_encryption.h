// Datagrams to a group under seal. Any user of a host may listen to a group of the network and send to it, so what members send is always
// secret to others, and nothing of it can be changed, made up, or brought twice. Members are not told from each other: all have one secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "transport/network/crypto/cipher.h"
#include "transport/network/crypto/sealed_datagram.h"

namespace starling::network {

/// One for each group, as long as this process may be a member of it: the windows have to outlive a membership.
class GroupEncryption {
  public:
    GroupEncryption(const Cipher& cipher, const uint64_t (&secret)[4]);

    /// Seals in place all behind the group's key, which is first; kSealBytes of room are behind it.
    void seal(std::byte* datagram, size_t bytes);
    /// Opens in place a datagram of this length, which then is kSealBytes shorter. False if no member has sealed it, or it has come before.
    bool open(std::byte* datagram, size_t bytes);

  private:
    struct Sender {
        ReadyKey key;
        ReplayWindow window;
    };
    ReadyKey key_of(uint64_t salt) const;

    const Cipher& cipher_;
    SealKey secret_;
    uint64_t salt_, number_ = 0;  ///< of what this process sends
    ReadyKey key_;
    std::unordered_map<uint64_t, Sender> senders_;  ///< by salt; only those who have the secret get in
};

}  // namespace starling::network
