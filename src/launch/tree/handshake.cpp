#include "launch/tree/handshake.h"

#include <algorithm>

namespace starling::launch {

namespace {

constexpr std::string_view kMagic("STARLNG\x01", 8);
constexpr size_t kTag = 8;

std::string fresh_nonce() {
    std::string nonce(Handshake::kNonce, '\0');
    fill_random(nonce.data(), nonce.size());
    return nonce;
}

}  // namespace

Handshake::Handshake(Role role, const TreeKey& key) : role_(role), key_(key) {
    (role == Role::child ? child_nonce_ : parent_nonce_) = fresh_nonce();
}

// Tells universes apart before anyone has to prove anything.
std::string Handshake::tag() const {
    return std::string(bytes_of(hmac_sha256(key_.view(), "starling universe")).substr(0, kTag));
}

Sha256Digest Handshake::proof(Role of) const {
    HmacSha256 hmac(key_.view());
    hmac.update(of == Role::child ? "starling child  " : "starling parent ");
    hmac.update(child_nonce_);
    hmac.update(parent_nonce_);
    return hmac.finish();
}

Sha256Digest Handshake::frame_key(Role of) const {
    HmacSha256 hmac(key_.view());
    hmac.update(of == Role::child ? "starling frames up  " : "starling frames down");
    hmac.update(child_nonce_);
    hmac.update(parent_nonce_);
    return hmac.finish();
}

std::string Handshake::opening() {
    if (role_ == Role::parent) return {};
    return std::string(kMagic) + tag() + child_nonce_;
}

Handshake::State Handshake::feed(std::string_view& bytes, std::string& out) {
    while (state_ == State::waiting && !bytes.empty()) {
        const size_t wanted = role_ == Role::child ? kNonce + kProof : challenged_ ? kProof : kHello;
        const size_t part = std::min(bytes.size(), wanted - buffer_.size());
        buffer_.append(bytes.substr(0, part));
        bytes.remove_prefix(part);
        // A wrong first byte is enough: whoever speaks another protocol is not kept waiting.
        const size_t known = std::min(buffer_.size(), kMagic.size());
        if (role_ == Role::parent && !challenged_ && buffer_.substr(0, known) != kMagic.substr(0, known))
            return state_ = State::refused;
        if (buffer_.size() < wanted) break;
        state_ = role_ == Role::child ? take_challenge(out) : challenged_ ? take_proof() : take_hello(out);
        buffer_.clear();
    }
    return state_;
}

Handshake::State Handshake::take_hello(std::string& out) {
    if (!equal_secret(std::string_view(buffer_).substr(kMagic.size(), kTag), tag())) return State::refused;
    child_nonce_ = buffer_.substr(kMagic.size() + kTag);
    challenged_ = true;
    out += parent_nonce_;
    out += bytes_of(proof(Role::parent));
    return State::waiting;
}

Handshake::State Handshake::take_challenge(std::string& out) {
    parent_nonce_ = buffer_.substr(0, kNonce);
    if (!equal_secret(std::string_view(buffer_).substr(kNonce), bytes_of(proof(Role::parent))))
        return State::refused;
    out += bytes_of(proof(Role::child));
    return State::proved;
}

Handshake::State Handshake::take_proof() {
    return equal_secret(buffer_, bytes_of(proof(Role::child))) ? State::proved : State::refused;
}

}  // namespace starling::launch
