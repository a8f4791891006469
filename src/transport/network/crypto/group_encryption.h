// Encryption of datagrams to a multicast group. Any user of a host may join a group of the network and send to it. Therefore the datagrams
// of members are always encrypted, and those that were changed, forged or replayed are dropped. Members cannot authenticate each other,
// since all have the same secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "transport/network/crypto/cipher.h"
#include "transport/network/crypto/sealed_datagram.h"

namespace starling::network {

/// The encryption state of one group. It lives as long as this process may be a member: the replay windows must outlive a membership.
class GroupEncryption {
  public:
    GroupEncryption(const Cipher& cipher, const uint64_t (&secret)[4]);

    /// Seals the datagram in place, except the group's key at its beginning. The buffer needs kSealBytes of space behind the datagram.
    void seal(std::byte* datagram, size_t bytes);
    /// Opens in place a datagram of this length, which is kSealBytes shorter afterwards. Returns false if no member has sealed it, or if it
    /// is a duplicate.
    bool open(std::byte* datagram, size_t bytes);

  private:
    struct SenderState {
        ReadyKey key;
        ReplayWindow window;
    };
    ReadyKey key_of(uint64_t salt) const;

    const Cipher& cipher_;
    SealKey secret_;
    uint64_t salt_, number_ = 0;  ///< this process's salt and the number of the last datagram that it sealed
    ReadyKey key_;
    /// State of each sender, by salt; only holders of the secret are added.
    std::unordered_map<uint64_t, SenderState> senders_;
};

}  // namespace starling::network
