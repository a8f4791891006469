#include "launch/tree/handshake.h"

#include <sodium.h>

#include <algorithm>
#include <initializer_list>

#include "base/error.h"
#include "base/random.h"
#include "base/wire.h"
#include "launch/tree/munge.h"

namespace starling::launch {

namespace {

constexpr std::string_view kMagic("STARLNG\x01", 8);
constexpr size_t kTag = 8, kLength = 2;
constexpr const char* kPlainParent =
    "it does not encrypt messages between daemons, but this one does; set STARLING_ENCRYPTION to the same, on or off, for both";
constexpr const char* kEncryptingParent =
    "it encrypts messages between daemons, but this one does not; set STARLING_ENCRYPTION to the same, on or off, for both";

std::string fresh_nonce() {
    std::string nonce(Handshake::kNonce, '\0');
    draw_random(nonce.data(), nonce.size());
    return nonce;
}

template <class Bytes>
const unsigned char* raw(const Bytes& bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// Returns the HMAC-SHA-256 of the concatenated parts.
std::array<uint8_t, 32> keyed_hash(const TreeKey& key, std::initializer_list<std::string_view> parts) {
    std::array<uint8_t, crypto_auth_hmacsha256_BYTES> hash;
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, key.bytes.data(), key.bytes.size());
    for (const std::string_view part : parts) crypto_auth_hmacsha256_update(&state, raw(part), part.size());
    crypto_auth_hmacsha256_final(&state, hash.data());
    return hash;
}

template <class Bytes>
std::string_view view_of(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Compares in a time that does not depend on the position of the difference.
bool equal_secret(std::string_view a, std::string_view b) {
    return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Handshake::Handshake(HandshakeRole role, const TreeCredentials& credentials)
    : role_(role), key_(credentials.key), munge_(credentials.munge), encrypt_(credentials.encrypt) {
    if (sodium_init() < 0) panic("cannot authenticate the connections between hosts: libsodium's sodium_init() failed");
    (role_ == HandshakeRole::child ? child_nonce_ : parent_nonce_) = fresh_nonce();
}

// Returns the tag by which both ends check, before any proof, that they belong to one universe.
std::string Handshake::tag() const { return std::string(view_of(keyed_hash(key_, {"starling universe"})).substr(0, kTag)); }

// Returns a digest for one purpose that only holders of the key can compute for this exchange of nonces.
Handshake::Digest Handshake::derive(std::string_view purpose, bool encrypt) const {
    return keyed_hash(key_, {purpose, encrypt ? "encrypted" : "", child_nonce_, parent_nonce_, secret_});
}

Handshake::Digest Handshake::proof(HandshakeRole of, bool encrypt) const {
    return derive(of == HandshakeRole::child ? "starling child  " : "starling parent ", encrypt);
}

FrameKey Handshake::frame_key(HandshakeRole of) const {
    return {derive(of == HandshakeRole::child ? "starling frames up  " : "starling frames down", encrypt_), encrypt_};
}

std::string Handshake::opening() {
    if (role_ == HandshakeRole::parent) return {};
    return std::string(kMagic) + tag() + child_nonce_;
}

// Returns the number of bytes of the current step; it grows once the length of a credential is known.
size_t Handshake::wanted() const {
    if (role_ == HandshakeRole::parent) return challenged_ ? kProof : kHello;
    const size_t fixed = kNonce + kProof + (munge_ ? kLength : 0);
    if (!munge_ || buffer_.size() < fixed) return fixed;
    Reader in(std::string_view(buffer_).substr(kNonce + kProof));
    return fixed + in.number<uint16_t>();
}

Handshake::HandshakeState Handshake::feed(std::string_view& bytes, std::string& out) {
    while (state_ == HandshakeState::waiting && !bytes.empty()) {
        const size_t part = std::min(bytes.size(), wanted() - buffer_.size());
        buffer_.append(bytes.substr(0, part));
        bytes.remove_prefix(part);
        // Refuse after the first wrong byte, so that clients of other protocols need not wait.
        const size_t known = std::min(buffer_.size(), kMagic.size());
        if (role_ == HandshakeRole::parent && !challenged_ && buffer_.substr(0, known) != kMagic.substr(0, known))
            return state_ = HandshakeState::refused;
        if (buffer_.size() < wanted()) continue;
        state_ = role_ == HandshakeRole::child ? handle_challenge(out) : challenged_ ? handle_proof() : handle_hello(out);
        buffer_.clear();
    }
    return state_;
}

Handshake::HandshakeState Handshake::handle_hello(std::string& out) {
    if (!equal_secret(std::string_view(buffer_).substr(kMagic.size(), kTag), tag())) return HandshakeState::refused;
    child_nonce_ = buffer_.substr(kMagic.size() + kTag);
    challenged_ = true;
    std::string credential;
    if (munge_ && !add_credential(credential)) return HandshakeState::refused;
    out += parent_nonce_;
    out += view_of(proof(HandshakeRole::parent, encrypt_));
    out += credential;
    return HandshakeState::waiting;
}

bool Handshake::add_credential(std::string& out) {
    std::string credential;
    TreeKey secret = make_key();
    secret_ = secret.view();
    if (!munge_seal(secret_ + child_nonce_, credential, why_) || credential.size() > kMostCredential) return false;
    out = Writer().number(static_cast<uint16_t>(credential.size())).take() + credential;
    return true;
}

// The child's nonce in the credential proves that it was made for this connection.
bool Handshake::open_credential() {
    std::string opened;
    const std::string credential = buffer_.substr(kNonce + kProof + kLength);
    if (credential.find('\0') != std::string::npos || !munge_open(credential, opened, why_)) return false;
    if (opened.size() != sizeof(TreeKey) + kNonce || !equal_secret(opened.substr(sizeof(TreeKey)), child_nonce_)) return false;
    secret_ = opened.substr(0, sizeof(TreeKey));
    return true;
}

Handshake::HandshakeState Handshake::handle_challenge(std::string& out) {
    parent_nonce_ = buffer_.substr(0, kNonce);
    if (munge_ && !open_credential()) return HandshakeState::refused;
    const std::string_view given = std::string_view(buffer_).substr(kNonce, kProof);
    if (!equal_secret(given, view_of(proof(HandshakeRole::parent, encrypt_)))) {
        if (equal_secret(given, view_of(proof(HandshakeRole::parent, !encrypt_))))
            why_ = encrypt_ ? kPlainParent : kEncryptingParent;
        return HandshakeState::refused;
    }
    out += view_of(proof(HandshakeRole::child, encrypt_));
    return HandshakeState::proved;
}

Handshake::HandshakeState Handshake::handle_proof() {
    return equal_secret(buffer_, view_of(proof(HandshakeRole::child, encrypt_))) ? HandshakeState::proved
                                                                                 : HandshakeState::refused;
}

}  // namespace starling::launch
