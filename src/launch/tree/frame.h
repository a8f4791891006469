// Frames between two authenticated daemons: length, kind, body, and a seal over these and the frame's number. So no frame can be changed,
// inserted, repeated or omitted on the way. The body may be encrypted. Encryption and seal are ChaCha20-Poly1305 (RFC 8439) by libsodium,
// with one key per connection and direction, and the frame's number as nonce. In a frame that is only sealed, the whole body is additional
// data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace starling::launch {

enum class TreeFrameKind : uint8_t {
    heartbeat = 1,
    attach,    ///< child → parent, the first frame: Attach
    welcome,   ///< parent → child, accepts an attach: TreeWelcome
    refuse,    ///< parent → child, rejects an attach: a sentence
    message,   ///< between any two hosts: MessageHead, payload, parts
    done,      ///< DoneRanges: messages from the peer that have arrived at all their receivers
    grow,      ///< parent → child: hosts that the child must start (Grow)
    moved,     ///< parent → child: hosts below the child that now have another parent
    ancestry,  ///< parent → child: the new list of the child's ancestors
    end,       ///< parent → child: the root has ended or cannot be reached; a sentence
    bye,       ///< child → parent: the child leaves, and has no children
    parting,   ///< the sender closes the connection because of an error, and lives
};
inline constexpr uint8_t kLastFrameKind = static_cast<uint8_t>(TreeFrameKind::parting);

inline constexpr size_t kFrameHead = 8;  ///< bytes: length of the body (32 bits), kind, three zeros
inline constexpr size_t kFrameSeal = 16;
inline constexpr size_t kMaxFrameBody = (64u << 20) + (16u << 20);  ///< bytes: a payload, and the set of its receivers

/// The key for the frames of one connection and direction.
struct FrameKey {
    std::array<uint8_t, 32> bytes{};
    bool encrypt = false;  ///< bodies are encrypted; heads with kind and length never are

    bool operator==(const FrameKey&) const = default;
};

/// Seals the frames of one direction. Frames must be sent in the order in which they were sealed.
class FrameSealer {
  public:
    explicit FrameSealer(const FrameKey& key) : key_(key) {}
    bool encrypts() const { return key_.encrypt; }
    /// Returns the whole frame; its body is the concatenation of the three parts.
    std::string seal(TreeFrameKind kind, std::string_view a, std::string_view b = {}, std::string_view c = {});
    /// Return the pieces of a frame, so that a long part need not be copied: head(), the unchanged parts, seal_of(). Not for encrypted
    /// frames.
    std::string head(TreeFrameKind kind, size_t body_bytes) const;
    std::string seal_of(std::string_view head, std::string_view a, std::string_view b, std::string_view c);

  private:
    FrameKey key_;
    uint64_t number_ = 0;
};

/// Splits a stream into frames and checks their seals. After garbage it returns no more frames.
class FrameOpener {
  public:
    enum class FrameOpenResult { need_more, frame, garbage };

    explicit FrameOpener(const FrameKey& key) : key_(key) {}
    /// Consumes `bytes` from the front, up to the end of one frame.
    FrameOpenResult feed(std::string_view& bytes, TreeFrameKind& kind, std::string& body);
    /// Returns whether no frame has arrived in part.
    bool is_between_frames() const { return head_.empty(); }

  private:
    bool read_head();
    bool open_body();

    FrameKey key_;
    uint64_t number_ = 0;
    std::string head_, body_;  ///< received bytes of the frame in progress; body_ includes the seal
    size_t length_ = 0;
    bool garbage_ = false;
};

}  // namespace starling::launch
