#include "transport/network/session/reassembly.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "transport/network/session/send_buffer.h"
#include "transport/network/session/session.h"

namespace starling::network {

struct Reassembly::OutOfOrderBytes {
    OutOfOrderBytes* next;
    uint64_t offset;
    uint32_t count;
    uint32_t reserved;
    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    uint64_t end() const { return offset + count; }
};

/// Guards a delivery that may throw: unless done() was called, the destructor restores the expected offset. If the sink has cleared
/// everything, a new stream has begun, and nothing is restored.
struct Reassembly::Undo {
    Reassembly& of;
    const uint64_t expected = of.expected_;
    const uint32_t partial_size = of.partial_size_;
    bool undo = true;

    explicit Undo(Reassembly& reassembly) : of(reassembly) {}
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    void done() { undo = false; }
    ~Undo() {
        if (!undo || of.expected_ == 0) return;
        of.expected_ = expected;
        of.partial_size_ = partial_size;
    }
};

namespace {
const packet::Header& header_at(const std::byte* bytes) { return *reinterpret_cast<const packet::Header*>(bytes); }
constexpr uint32_t kHeader = sizeof(packet::Header);
}  // namespace

Reassembly::ReassemblyResult Reassembly::accept(uint64_t offset, const std::byte* bytes, uint32_t count, PacketSink& sink) {
    // If the same bytes are passed again after an exception, they may have been delivered, but not the out-of-order bytes behind them.
    // These are delivered now.
    if (count == 0 || offset + count <= expected_)
        return early_ && early_->offset <= expected_ ? drain(sink) : ReassemblyResult::duplicate;
    if (offset + count > expected_ + window_) return ReassemblyResult::beyond;
    if (offset > expected_) return store(offset, bytes, count);
    const auto known = static_cast<uint32_t>(expected_ - offset);
    const ReassemblyResult result = consume(bytes + known, count - known, sink);
    return result == ReassemblyResult::in_order && early_ ? drain(sink) : result;
}

Reassembly::ReassemblyResult Reassembly::drain(PacketSink& sink) {
    while (early_ && early_->offset <= expected_) {
        OutOfOrderBytes* const first = early_;
        early_ = first->next;
        early_bytes_ -= first->count + static_cast<uint32_t>(sizeof(OutOfOrderBytes));
        ReassemblyResult result = ReassemblyResult::in_order;
        try {
            if (first->end() > expected_) {
                const auto known = static_cast<uint32_t>(expected_ - first->offset);
                result = consume(first->data() + known, first->count - known, sink);
            }
        } catch (...) {
            if (expected_ == 0) {  // the sink has cleared everything
                ::operator delete(first);
                throw;
            }
            first->next = early_;
            early_ = first;
            early_bytes_ += first->count + static_cast<uint32_t>(sizeof(OutOfOrderBytes));
            throw;
        }
        ::operator delete(first);
        if (result != ReassemblyResult::in_order) return result;
    }
    return ReassemblyResult::in_order;
}

Reassembly::ReassemblyResult Reassembly::consume(const std::byte* bytes, uint32_t count, PacketSink& sink) {
    if (partial_) [[unlikely]] {
        Undo whole(*this);
        const uint32_t taken = complete_partial(bytes, count);
        bytes += taken;
        count -= taken;
        expected_ += taken;
        const bool broken = partial_size_ >= kHeader && header_at(partial_.get()).bytes > kMaxPayload;
        if (broken || partial_size_ < partial_need_) {
            whole.done();
            return broken ? ReassemblyResult::broken : ReassemblyResult::in_order;
        }
        if (!deliver_partial(sink)) return ReassemblyResult::stopped;
        whole.done();
    }
    return extract_packets(bytes, count, sink);
}

bool Reassembly::deliver_partial(PacketSink& sink) {
    // Take the packet out first: the sink may begin a new stream, which must not free it.
    std::unique_ptr<std::byte[]> packet = std::move(partial_);
    try {
        return sink.deliver(header_at(packet.get()), packet.get() + kHeader);
    } catch (...) {
        if (expected_ != 0) partial_ = std::move(packet);
        throw;
    }
}

uint32_t Reassembly::complete_partial(const std::byte* bytes, uint32_t count) {
    uint32_t taken = 0;
    while (taken < count && partial_size_ < partial_need_) {
        const uint32_t n = std::min(count - taken, partial_need_ - partial_size_);
        std::memcpy(partial_.get() + partial_size_, bytes + taken, n);
        partial_size_ += n;
        taken += n;
        if (partial_size_ != kHeader || partial_need_ != kHeader) continue;
        const uint32_t payload = header_at(partial_.get()).bytes;
        if (payload > kMaxPayload) break;
        auto whole = std::make_unique_for_overwrite<std::byte[]>(packet_bytes(payload));
        partial_need_ = packet_bytes(payload);
        std::memcpy(whole.get(), partial_.get(), kHeader);
        partial_ = std::move(whole);
    }
    return taken;
}

Reassembly::ReassemblyResult Reassembly::extract_packets(const std::byte* bytes, uint32_t count, PacketSink& sink) {
    while (count >= kHeader) {
        const packet::Header& header = header_at(bytes);
        if (header.bytes > kMaxPayload) return ReassemblyResult::broken;
        const uint32_t whole = packet_bytes(header.bytes);
        if (whole > count) break;
        Undo delivery(*this);
        expected_ += whole;
        const bool wants_more = sink.deliver(header, bytes + kHeader);
        delivery.done();
        if (!wants_more) return ReassemblyResult::stopped;
        bytes += whole;
        count -= whole;
    }
    if (count == 0) return ReassemblyResult::in_order;
    const uint32_t need = count < kHeader ? kHeader : packet_bytes(header_at(bytes).bytes);
    partial_ = std::make_unique_for_overwrite<std::byte[]>(need);
    partial_need_ = need;
    std::memcpy(partial_.get(), bytes, count);
    partial_size_ = count;
    expected_ += count;
    return ReassemblyResult::in_order;
}

// Stores the bytes that are not stored yet. The overhead of each block is counted, so that a stream cut into tiny parts takes no more
// memory than another.
Reassembly::ReassemblyResult Reassembly::store(uint64_t offset, const std::byte* bytes, uint32_t count) {
    ReassemblyResult result = ReassemblyResult::duplicate;
    OutOfOrderBytes** link = &early_;
    while (count > 0) {
        while (*link && (*link)->end() <= offset) link = &(*link)->next;
        if (*link && (*link)->offset <= offset) {
            const auto known = static_cast<uint32_t>(std::min<uint64_t>((*link)->end() - offset, count));
            offset += known;
            bytes += known;
            count -= known;
            continue;
        }
        uint32_t n = count;
        if (*link) n = static_cast<uint32_t>(std::min<uint64_t>(n, (*link)->offset - offset));
        const uint32_t cost = n + static_cast<uint32_t>(sizeof(OutOfOrderBytes));
        if (early_bytes_ + cost > 2 * window_) return ReassemblyResult::beyond;
        auto* const fragment = static_cast<OutOfOrderBytes*>(::operator new(sizeof(OutOfOrderBytes) + n));
        *fragment = {*link, offset, n, 0};
        std::memcpy(fragment->data(), bytes, n);
        *link = fragment;
        early_bytes_ += cost;
        result = ReassemblyResult::early;
    }
    return result;
}

int Reassembly::ranges(AckRange* out, int most, bool& more) const {
    int count = 0;
    more = false;
    uint64_t end = 0;
    for (const OutOfOrderBytes* fragment = early_; fragment; fragment = fragment->next) {
        // Skip a block that is in order and about to be delivered; the cumulative acknowledgement will cover it.
        if (fragment->offset <= expected_) continue;
        if (count > 0 && fragment->offset == end) {
            out[count - 1].length += fragment->count;
        } else {
            if (count == most) {
                more = true;
                break;
            }
            out[count++] = {static_cast<uint32_t>(fragment->offset - expected_), fragment->count};
        }
        end = fragment->end();
    }
    return count;
}

void Reassembly::clear() {
    while (OutOfOrderBytes* fragment = early_) {
        early_ = fragment->next;
        ::operator delete(fragment);
    }
    early_bytes_ = 0;
    partial_.reset();
    partial_size_ = partial_need_ = 0;
    expected_ = 0;
}

}  // namespace starling::network
