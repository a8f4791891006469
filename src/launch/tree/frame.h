// Frames between two daemons that have proved themselves: length, kind, body, and a hash over all of it and the frame's
// number, so that nothing can be changed, inserted, repeated or left out on the way. They are not encrypted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/sha256.h"

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
inline constexpr size_t kFrameMac = 16;
inline constexpr size_t kMaxFrameBody = (64u << 20) + (16u << 20);  ///< a payload and the set of its receivers

/// Puts the frames of one direction under seal. Frames must be sent in the order in which they were sealed.
class FrameSealer {
  public:
    explicit FrameSealer(const Sha256Digest& key) : keyed_(bytes_of(key)) {}
    /// The head of a frame whose body is the three parts in a row.
    std::string head(FrameKind kind, size_t body_bytes) const;
    std::string mac(std::string_view head, std::string_view a, std::string_view b, std::string_view c);
    /// The whole frame at once.
    std::string seal(FrameKind kind, std::string_view body);

  private:
    HmacSha256 keyed_;
    uint64_t number_ = 0;
};

/// Cuts a stream into frames and checks their seals. After garbage nothing comes any more.
class FrameOpener {
  public:
    enum class Result { need_more, frame, garbage };

    explicit FrameOpener(const Sha256Digest& key) : keyed_(bytes_of(key)) {}
    /// Takes from the front of `bytes` up to the end of one frame.
    Result feed(std::string_view& bytes, FrameKind& kind, std::string& body);

  private:
    bool read_head();
    bool check_mac();

    HmacSha256 keyed_;
    uint64_t number_ = 0;
    std::string head_, body_;  ///< body_ with the mac
    size_t length_ = 0;
    bool garbage_ = false;
};

}  // namespace starling::launch
