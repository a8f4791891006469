#include "launch/tree/frame.h"

#include <algorithm>

#include "base/wire.h"

namespace starling::launch {

namespace {

std::string seal_of(HmacSha256 hmac, uint64_t number, std::string_view head, std::string_view a, std::string_view b,
                    std::string_view c) {
    Writer counted;
    counted.number(number);
    hmac.update(counted.view());
    hmac.update(head);
    hmac.update(a);
    hmac.update(b);
    hmac.update(c);
    return std::string(bytes_of(hmac.finish()).substr(0, kFrameMac));
}

}  // namespace

std::string FrameSealer::head(FrameKind kind, size_t body_bytes) const {
    Writer out;
    out.number(static_cast<uint32_t>(body_bytes)).number(static_cast<uint32_t>(kind));
    return out.take();
}

std::string FrameSealer::mac(std::string_view head, std::string_view a, std::string_view b, std::string_view c) {
    return seal_of(keyed_, number_++, head, a, b, c);
}

std::string FrameSealer::seal(FrameKind kind, std::string_view body) {
    std::string frame = head(kind, body.size());
    const std::string code = mac(frame, body, {}, {});
    frame.append(body).append(code);
    return frame;
}

bool FrameOpener::read_head() {
    Reader in(head_);
    length_ = in.number<uint32_t>();
    const auto kind = in.number<uint32_t>();
    return length_ <= kMaxFrameBody && kind >= 1 && kind <= kLastFrameKind;
}

bool FrameOpener::check_mac() {
    const std::string_view all(body_);
    return equal_secret(seal_of(keyed_, number_++, head_, all.substr(0, length_), {}, {}), all.substr(length_));
}

FrameOpener::Result FrameOpener::feed(std::string_view& bytes, FrameKind& kind, std::string& body) {
    if (garbage_) return Result::garbage;
    if (head_.size() < kFrameHead) {
        const size_t part = std::min(bytes.size(), kFrameHead - head_.size());
        head_.append(bytes.substr(0, part));
        bytes.remove_prefix(part);
        if (head_.size() < kFrameHead) return Result::need_more;
        garbage_ = !read_head();
        if (garbage_) return Result::garbage;
    }
    // The buffer grows with what has arrived, not with what is announced.
    const size_t part = std::min(bytes.size(), length_ + kFrameMac - body_.size());
    body_.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (body_.size() < length_ + kFrameMac) return Result::need_more;
    garbage_ = !check_mac();
    if (garbage_) return Result::garbage;
    kind = static_cast<FrameKind>(head_[4]);
    body_.resize(length_);
    body = std::move(body_);
    head_.clear();
    body_.clear();
    return Result::frame;
}

}  // namespace starling::launch
