// Frames between two daemons that have proved themselves: length, kind, body, and a seal over all of it and the frame's
// number, so that nothing can be changed, inserted, repeated or left out on the way. The body may be encrypted. Both is
// ChaCha20-Poly1305 (RFC 8439) by libsodium, with a key per connection and direction and the frame's number as nonce; a frame that
// is only sealed has its whole body as additional data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace starling::launch {

enum class FrameKind : uint8_t {
    heartbeat = 1,
    attach,    ///< child → parent, first of all: Attach
    welcome,   ///< its answer: Welcome,
    refuse,    ///< or a sentence
    message,   ///< anything between any two hosts: MessageHead, payload, parts
    done,      ///< DoneRanges: messages of the other side that have arrived at all their receivers
    grow,      ///< parent → child: Grow
    moved,     ///< parent → child: hosts that now hang elsewhere
    ancestry,  ///< parent → child: the new list of ancestors
    end,       ///< parent → child: the root is gone; a sentence
    bye,       ///< child → parent: it leaves, and nobody is below it
};
inline constexpr uint8_t kLastFrameKind = static_cast<uint8_t>(FrameKind::bye);

inline constexpr size_t kFrameHead = 8;  ///< bytes: length of the body (32 bits), kind, three zeros
inline constexpr size_t kFrameSeal = 16;
inline constexpr size_t kMaxFrameBody = (64u << 20) + (16u << 20);  ///< a payload and the set of its receivers

/// What the frames of one connection and direction are sealed with.
struct FrameKey {
    std::array<uint8_t, 32> bytes{};
    bool encrypt = false;  ///< bodies are secret; heads, which say kind and length, never are

    bool operator==(const FrameKey&) const = default;
};

/// Puts the frames of one direction under seal. Frames must be sent in the order in which they were sealed.
class FrameSealer {
  public:
    explicit FrameSealer(const FrameKey& key) : key_(key) {}
    bool encrypts() const { return key_.encrypt; }
    /// The whole frame at once; its body is the three parts in a row.
    std::string seal(FrameKind kind, std::string_view a, std::string_view b = {}, std::string_view c = {});
    /// In pieces, so that a long part need not be copied, if it does not encrypt: the head, the parts as they are, the seal.
    std::string head(FrameKind kind, size_t body_bytes) const;
    std::string seal_of(std::string_view head, std::string_view a, std::string_view b, std::string_view c);

  private:
    FrameKey key_;
    uint64_t number_ = 0;
};

/// Cuts a stream into frames and checks their seals. After garbage nothing comes any more.
class FrameOpener {
  public:
    enum class Result { need_more, frame, garbage };

    explicit FrameOpener(const FrameKey& key) : key_(key) {}
    /// Takes from the front of `bytes` up to the end of one frame.
    Result feed(std::string_view& bytes, FrameKind& kind, std::string& body);

  private:
    bool read_head();
    bool open_body();

    FrameKey key_;
    uint64_t number_ = 0;
    std::string head_, body_;  ///< body_ with the seal
    size_t length_ = 0;
    bool garbage_ = false;
};

}  // namespace starling::launch
