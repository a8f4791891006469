// How two daemons prove to each other that they hold the universe's key, without sending it: each hashes the other's
// fresh random number with it. Pure: bytes in, bytes out; no socket, no clock.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "launch/tree/frame.h"
#include "launch/tree/key.h"

namespace starling::launch {

/// child → parent: magic, universe's tag, nonce; parent → child: nonce, proof; child → parent: proof. Anything
/// else ends it. The keys of the connection's frames come from both nonces, so that nothing can be replayed.
/// With MUNGE the parent adds a credential with a secret in it, which is hashed in with the key: only this user
/// can open it. (Then it is not pure: it asks munged.) Whether frames are encrypted is hashed in too: both ends want the same, or
/// the child finds that the parent wants the other and says so.
class Handshake {
  public:
    enum class Role { child, parent };
    enum class State { waiting, proved, refused };

    Handshake(Role role, const TreeCredentials& credentials);

    /// Takes what it needs from the front of `bytes`; what is left after `proved` are frames. Appends to
    /// `out` what has to be sent.
    State feed(std::string_view& bytes, std::string& out);
    /// What a child begins with; empty for a parent.
    std::string opening();

    /// Why it was refused.
    const std::string& why() const { return why_; }

    /// Valid when proved.
    FrameKey key_to_send() const { return frame_key(role_); }
    FrameKey key_to_receive() const { return frame_key(role_ == Role::child ? Role::parent : Role::child); }

    static constexpr size_t kNonce = 16, kHello = 32, kProof = 32;

  private:
    State take_hello(std::string& out);
    State take_challenge(std::string& out);
    State take_proof();
    using Digest = std::array<uint8_t, 32>;

    Digest derive(std::string_view purpose, bool encrypt) const;
    Digest proof(Role of, bool encrypt) const;
    FrameKey frame_key(Role of) const;
    std::string tag() const;
    size_t wanted() const;
    bool add_credential(std::string& out);
    bool open_credential();

    Role role_;
    TreeKey key_;
    bool munge_, encrypt_;
    std::string secret_;  ///< from the credential
    std::string why_ = "it does not hold this universe's key";
    State state_ = State::waiting;
    std::string child_nonce_, parent_nonce_;
    std::string buffer_;
    bool challenged_ = false;  ///< the parent's part of the exchange is out
};

}  // namespace starling::launch
