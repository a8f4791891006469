#include "transport/network/tcp/frames.h"

#include <algorithm>
#include <cstring>

namespace starling::network {

namespace {

constexpr std::byte kZeros[4096]{};
static_assert(sizeof kZeros >= kFrameAlignment);
/// Buffer space prepared after a fragment, bytes: enough for the head of the next frame and for small frames. A larger buffer would
/// receive, and so copy, data of the next fragment.
constexpr size_t kBehindPiece = 4096;

bool plausible(const FramePrefix& prefix) {
    if (prefix.mark != FramePrefix::kMark || prefix.bytes == 0) return false;
    switch (prefix.kind) {
        case TcpFrameKind::session:
            return prefix.bytes <= kTcpFrame;
        case TcpFrameKind::fragment:
            return prefix.bytes > sizeof(PieceHead) && prefix.bytes <= sizeof(PieceHead) + kLongestPiece;
        case TcpFrameKind::addresses:
            return prefix.bytes <= 4 * kOfferedAddresses && prefix.bytes % 4 == 0;
        case TcpFrameKind::finish:
            return prefix.bytes == kFinishBytes;
    }
    return false;
}

}  // namespace

int FrameReader::prepare(FrameSink& sink, std::byte* buffer, size_t bytes, iovec (&parts)[kParts]) {
    buffer_ = buffer;
    direct_ = 0;
    into_ = ReadTarget::buffer;
    if (in_fragment()) {
        const uint64_t rest = fragment_.bytes - done_;
        if (std::byte* target = sink.target(fragment_, done_, rest)) {
            into_ = ReadTarget::fragment;
            parts[0] = {target, rest};
            parts[1] = {scratch_, padding_};
            parts[2] = {buffer, std::min(bytes, kBehindPiece)};
            direct_ = rest + padding_;
            return 3;
        }
        buffer_ += -(rest + padding_) % kFrameAlignment;  // offset by which the next frame is aligned
        parts[0] = {buffer_, bytes - static_cast<size_t>(buffer_ - buffer)};
        return 1;
    }
    if (whole_ > 0) {
        into_ = ReadTarget::frame;
        direct_ = whole_ - stored_bytes_;
        parts[0] = {rest_.get() + stored_bytes_, direct_};
        parts[1] = {buffer, bytes};
        return 2;
    }
    if (padding_ > 0) buffer_ += kFrameAlignment - padding_;
    // Move the beginning of the head, a few bytes, to the buffer into which the rest is read.
    std::memcpy(buffer_, start_, stored_bytes_);
    parts[0] = {buffer_ + stored_bytes_, bytes - static_cast<size_t>(buffer_ - buffer) - stored_bytes_};
    return 1;
}

bool FrameReader::arrived(FrameSink& sink, size_t bytes) {
    const size_t direct = std::min(bytes, direct_);
    const size_t behind = bytes - direct;
    switch (into_) {
        case ReadTarget::fragment: {
            const auto data = std::min<uint64_t>(direct, fragment_.bytes - done_);
            done_ += data;
            padding_ -= static_cast<uint32_t>(direct - data);
            if (done_ == fragment_.bytes && data > 0 && !sink.on_fragment(fragment_)) return false;
            return behind == 0 || parse(sink, buffer_, behind);
        }
        case ReadTarget::frame: {
            stored_bytes_ += static_cast<uint32_t>(direct);
            if (stored_bytes_ < whole_) return true;
            FramePrefix prefix;
            std::memcpy(&prefix, rest_.get(), sizeof prefix);
            const std::unique_ptr<std::byte[]> frame = std::move(rest_);
            stored_bytes_ = whole_ = 0;
            if (!sink.frame(prefix.kind, frame.get() + sizeof prefix, prefix.bytes)) return false;
            return behind == 0 || parse(sink, buffer_, behind);
        }
        case ReadTarget::buffer:
            break;
    }
    const size_t whole = bytes + stored_bytes_;
    stored_bytes_ = 0;
    return parse(sink, buffer_, whole);
}

bool FrameReader::parse(FrameSink& sink, const std::byte* data, size_t bytes) {
    while (bytes > 0) {
        if (in_fragment()) {
            if (!handle_fragment(sink, data, bytes)) return false;
        } else if (padding_ > 0) {
            const auto skipped = std::min<size_t>(padding_, bytes);
            padding_ -= static_cast<uint32_t>(skipped);
            data += skipped, bytes -= skipped;
        } else {
            if (!parse_frame(sink, data, bytes)) return false;
            if (stored_bytes_ > 0) return true;
        }
    }
    return true;
}

bool FrameReader::parse_frame(FrameSink& sink, const std::byte*& data, size_t& bytes) {
    FramePrefix prefix;
    if (bytes < sizeof prefix) {
        store(data, bytes, 0);
        return true;
    }
    std::memcpy(&prefix, data, sizeof prefix);
    if (!plausible(prefix)) return false;
    if (prefix.kind == TcpFrameKind::fragment) return begin_fragment(sink, prefix, data, bytes);
    const size_t whole = sizeof prefix + prefix.bytes + frame_padding(prefix.bytes);
    if (bytes < whole) {
        store(data, bytes, whole);
        return true;
    }
    const std::byte* contents = data + sizeof prefix;
    data += whole, bytes -= whole;
    return sink.frame(prefix.kind, contents, prefix.bytes);
}

bool FrameReader::begin_fragment(FrameSink& sink, const FramePrefix& prefix, const std::byte*& data, size_t& bytes) {
    if (bytes < kPieceStart) {
        store(data, bytes, 0);
        return true;
    }
    PieceHead head;
    std::memcpy(&head, data + sizeof prefix, sizeof head);
    const uint64_t length = prefix.bytes - sizeof head;
    if (head.offset + length < head.offset) return false;
    fragment_ = {head.serial, head.generation, head.offset, length};
    done_ = 0;
    padding_ = static_cast<uint32_t>(frame_padding(prefix.bytes));
    data += kPieceStart, bytes -= kPieceStart;
    return bytes == 0 || handle_fragment(sink, data, bytes);
}

bool FrameReader::handle_fragment(FrameSink& sink, const std::byte*& data, size_t& bytes) {
    const uint64_t part = std::min<uint64_t>(bytes, fragment_.bytes - done_);
    if (std::byte* target = sink.target(fragment_, done_, part))
        std::memcpy(target, data, part);
    else
        sink.unpack(fragment_, done_, data, part);
    done_ += part;
    data += part, bytes -= part;
    return in_fragment() || sink.on_fragment(fragment_);
}

void FrameReader::store(const std::byte* data, size_t bytes, size_t whole) {
    if (whole > 0) rest_ = std::make_unique_for_overwrite<std::byte[]>(whole);
    std::memcpy(whole > 0 ? rest_.get() : start_, data, bytes);
    stored_bytes_ = static_cast<uint32_t>(bytes);
    whole_ = static_cast<uint32_t>(whole);
}

void FrameWriter::begin_fragment(const OutStream& stream, StreamRange range, const std::byte* data) {
    const FramePrefix prefix{static_cast<uint32_t>(sizeof(PieceHead) + range.bytes()), TcpFrameKind::fragment, 0,
                             FramePrefix::kMark};
    const PieceHead head{stream.source().serial, stream.source().generation, range.begin};
    std::memcpy(head_, &prefix, sizeof prefix);
    std::memcpy(head_ + sizeof prefix, &head, sizeof head);
    stream_ = &stream;
    data_ = data;
    data_bytes_ = range.bytes();
    fragment_total_ = kPieceStart + data_bytes_ + frame_padding(data_bytes_);
    fragment_done_ = 0;
}

void FrameWriter::blank_fragment() {
    stream_ = nullptr;
    data_ = nullptr;
}

void FrameWriter::store_tail(const iovec* parts, int count, size_t taken) {
    tail_.clear();
    tail_at_ = 0;
    for (int i = 0; i < count; ++i) {
        const size_t skip = std::min(taken, parts[i].iov_len);
        taken -= skip;
        const auto* base = static_cast<const std::byte*>(parts[i].iov_base);
        tail_.insert(tail_.end(), base + skip, base + parts[i].iov_len);
    }
}

int FrameWriter::gather(iovec (&parts)[kParts]) const {
    if (tail_at_ < tail_.size()) {
        parts[0] = {const_cast<std::byte*>(tail_.data()) + tail_at_, tail_.size() - tail_at_};
        return 1;
    }
    int count = 0;
    uint64_t skip = fragment_done_;
    const auto add = [&](const std::byte* base, uint64_t bytes) {
        const uint64_t skipped = std::min(skip, bytes);
        skip -= skipped;
        if (skipped < bytes) parts[count++] = {const_cast<std::byte*>(base) + skipped, bytes - skipped};
    };
    if (fragment_left() == 0) return 0;
    add(head_, kPieceStart);
    if (!data_) {
        const uint64_t rest = fragment_total_ - kPieceStart - skip;
        if (rest > 0) parts[count++] = {const_cast<std::byte*>(kZeros), std::min<uint64_t>(rest, sizeof kZeros)};
        return count;
    }
    add(data_, data_bytes_);
    add(kZeros, frame_padding(data_bytes_));
    return count;
}

void FrameWriter::wrote(size_t bytes) {
    if (tail_at_ < tail_.size()) {
        tail_at_ += bytes;
        if (tail_at_ < tail_.size()) return;
        tail_at_ = 0;
        tail_ = {};  // free the buffer, so that an idle socket uses no memory
        return;
    }
    fragment_done_ += bytes;
}

}  // namespace starling::network
