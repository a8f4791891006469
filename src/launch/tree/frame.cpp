#include "launch/tree/frame.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "base/wire.h"

namespace starling::launch {

namespace {

static_assert(kFrameSeal == crypto_aead_chacha20poly1305_ietf_ABYTES && kFrameSeal == crypto_onetimeauth_BYTES);
static_assert(sizeof FrameKey::bytes == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

// A nonce is never used twice with one key: each key belongs to one connection and direction, and frame numbers only increase.
struct FrameNonce {
    explicit FrameNonce(uint64_t number) { std::memcpy(bytes, &number, sizeof number); }
    unsigned char bytes[crypto_aead_chacha20poly1305_ietf_NPUBBYTES] = {};
};

const unsigned char* raw(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* raw(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

// Computes a seal without encryption: the cipher's first bytes for this frame are the key of a one-time hash. The head contains the body's
// length, so no separators are needed between the parts.
std::string seal_open_frame(const FrameKey& key, uint64_t number, std::string_view head, std::string_view a, std::string_view b,
                            std::string_view c) {
    unsigned char once[crypto_onetimeauth_KEYBYTES];
    crypto_stream_chacha20_ietf(once, sizeof once, FrameNonce(number).bytes, key.bytes.data());
    crypto_onetimeauth_state state;
    crypto_onetimeauth_init(&state, once);
    for (const std::string_view part : {head, a, b, c}) crypto_onetimeauth_update(&state, raw(part), part.size());
    std::string seal(kFrameSeal, '\0');
    crypto_onetimeauth_final(&state, raw(seal));
    return seal;
}

}  // namespace

std::string FrameSealer::head(TreeFrameKind kind, size_t body_bytes) const {
    Writer out;
    out.number(static_cast<uint32_t>(body_bytes)).number(static_cast<uint32_t>(kind));
    return out.take();
}

std::string FrameSealer::seal_of(std::string_view head, std::string_view a, std::string_view b, std::string_view c) {
    return seal_open_frame(key_, number_++, head, a, b, c);
}

std::string FrameSealer::seal(TreeFrameKind kind, std::string_view a, std::string_view b, std::string_view c) {
    const size_t length = a.size() + b.size() + c.size();
    std::string frame = head(kind, length);
    frame.reserve(kFrameHead + length + kFrameSeal);
    frame.append(a).append(b).append(c);
    if (!key_.encrypt) {
        const std::string_view all(frame);
        return frame.append(seal_of(all.substr(0, kFrameHead), all.substr(kFrameHead), {}, {}));
    }
    frame.resize(kFrameHead + length + kFrameSeal);
    unsigned char* const body = raw(frame) + kFrameHead;
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(body, body + length, nullptr, body, length, raw(frame), kFrameHead,
                                                       nullptr, FrameNonce(number_++).bytes, key_.bytes.data());
    return frame;
}

bool FrameOpener::read_head() {
    Reader in(head_);
    length_ = in.number<uint32_t>();
    const auto kind = in.number<uint32_t>();
    return length_ <= kMaxFrameBody && kind >= 1 && kind <= kLastFrameKind;
}

// Checks the seal before any byte of the body is used.
bool FrameOpener::open_body() {
    unsigned char* const body = raw(body_);
    const uint64_t number = number_++;
    if (!key_.encrypt) {
        const std::string seal = seal_open_frame(key_, number, head_, std::string_view(body_).substr(0, length_), {}, {});
        return crypto_verify_16(raw(seal), body + length_) == 0;
    }
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(body, nullptr, body, length_, body + length_, raw(head_),
                                                              kFrameHead, FrameNonce(number).bytes, key_.bytes.data()) == 0;
}

FrameOpener::FrameOpenResult FrameOpener::feed(std::string_view& bytes, TreeFrameKind& kind, std::string& body) {
    if (garbage_) return FrameOpenResult::garbage;
    if (head_.size() < kFrameHead) {
        const size_t part = std::min(bytes.size(), kFrameHead - head_.size());
        head_.append(bytes.substr(0, part));
        bytes.remove_prefix(part);
        if (head_.size() < kFrameHead) return FrameOpenResult::need_more;
        garbage_ = !read_head();
        if (garbage_) return FrameOpenResult::garbage;
    }
    // The buffer grows with the received bytes, not with the announced length.
    const size_t part = std::min(bytes.size(), length_ + kFrameSeal - body_.size());
    body_.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (body_.size() < length_ + kFrameSeal) return FrameOpenResult::need_more;
    garbage_ = !open_body();
    if (garbage_) return FrameOpenResult::garbage;
    kind = static_cast<TreeFrameKind>(head_[4]);
    body_.resize(length_);
    body = std::move(body_);
    head_.clear();
    body_.clear();
    return FrameOpenResult::frame;
}

}  // namespace starling::launch
