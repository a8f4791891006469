// The handshake by which two daemons prove to each other that they hold the universe's key, without sending it: each hashes the peer's
// random nonce with the key. It converts bytes to bytes, without socket or clock.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "launch/tree/frame.h"
#include "launch/tree/key.h"

namespace starling::launch {

/// The exchange: child → parent: magic, the universe's tag, nonce; parent → child: nonce, proof; child → parent: proof. Any other bytes end
/// it.
///
/// The keys of the connection's frames are derived from both nonces, so nothing can be replayed. With MUNGE the parent adds a credential
/// with a secret that only this user can open. The secret is hashed with the key. (This step calls munged.) The encryption setting is
/// hashed too: if the settings of both ends differ, the child detects it and reports it.
class Handshake {
  public:
    enum class HandshakeRole { child, parent };
    enum class HandshakeState { waiting, proved, refused };

    Handshake(HandshakeRole role, const TreeCredentials& credentials);

    /// Consumes handshake bytes from the front of `bytes`; the rest after `proved` are frames. Appends the bytes to send to `out`.
    HandshakeState feed(std::string_view& bytes, std::string& out);
    /// Returns the first bytes that a child sends; empty for a parent.
    std::string opening();

    /// Returns the reason why the handshake was refused.
    const std::string& why() const { return why_; }

    /// Return the frame keys; valid in state `proved`.
    FrameKey key_to_send() const { return frame_key(role_); }
    FrameKey key_to_receive() const {
        return frame_key(role_ == HandshakeRole::child ? HandshakeRole::parent : HandshakeRole::child);
    }

    static constexpr size_t kNonce = 16, kHello = 32, kProof = 32;

  private:
    HandshakeState handle_hello(std::string& out);
    HandshakeState handle_challenge(std::string& out);
    HandshakeState handle_proof();
    using Digest = std::array<uint8_t, 32>;

    Digest derive(std::string_view purpose, bool encrypt) const;
    Digest proof(HandshakeRole of, bool encrypt) const;
    FrameKey frame_key(HandshakeRole of) const;
    std::string tag() const;
    size_t wanted() const;
    bool add_credential(std::string& out);
    bool open_credential();

    HandshakeRole role_;
    TreeKey key_;
    bool munge_, encrypt_;
    std::string secret_;  ///< secret from the MUNGE credential
    std::string why_ = "it does not hold this universe's key";
    HandshakeState state_ = HandshakeState::waiting;
    std::string child_nonce_, parent_nonce_;
    std::string buffer_;
    bool challenged_ = false;  ///< the parent has sent its nonce and proof
};

}  // namespace starling::launch
