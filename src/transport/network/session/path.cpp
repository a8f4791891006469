#include "transport/network/session/path.h"

#include <algorithm>

namespace starling::network {

void RoundTrip::sample(uint64_t ns) {
    latest_ = std::max<uint64_t>(ns, 1);
    if (smoothed_ == 0) {
        smoothed_ = latest_;
        deviation_ = latest_ / 2;
        return;
    }
    const uint64_t difference = smoothed_ > latest_ ? smoothed_ - latest_ : latest_ - smoothed_;
    deviation_ = (3 * deviation_ + difference) / 4;
    smoothed_ = (7 * smoothed_ + latest_) / 8;
}

uint64_t RoundTrip::timeout() const {
    if (smoothed_ == 0) return kFirstTimeout;
    return std::min(std::max(2 * smoothed_, smoothed_ + 4 * deviation_) + 2 * kAckDelay, kMostTimeout);
}

void CongestionWindow::set_datagram(uint32_t bytes) {
    datagram_ = bytes;
    bytes_ = std::max(bytes_, kLeast * datagram_);
}

void CongestionWindow::acknowledged(uint64_t bytes, bool full) {
    if (!full) return;  // an unused window says nothing about the network's capacity
    if (bytes_ < threshold_)
        bytes_ += bytes;
    else
        bytes_ += std::max<uint64_t>(1, datagram_ * bytes / bytes_);
    bytes_ = std::min(bytes_, std::max(most_, kLeast * datagram_));
}

void CongestionWindow::lost(uint64_t order, uint64_t next) {
    if (order < recovery_end_) return;
    recovery_end_ = next;
    bytes_ = std::max(bytes_ * 7 / 10, kLeast * datagram_);
    threshold_ = bytes_;
}

void CongestionWindow::collapse(uint64_t next) {
    recovery_end_ = next;
    threshold_ = std::max(bytes_ / 2, kLeast * datagram_);
    bytes_ = kLeast * datagram_;
}

uint64_t SessionPath::timeout_at(uint64_t held) const {
    const uint64_t wait = (round_trip.timeout() + held) << std::min<int>(backoff, 10);
    return last_sent + std::min(wait, kMostTimeout);
}

uint32_t next_smaller_datagram(uint32_t bytes) {
    // The MTUs to try: Ethernet with jumbo frames, Ethernet, common tunnels, the minima of IPv6 and of IPv4.
    for (const uint32_t mtu : {9000u, 4000u, 1500u, 1400u, 1280u, 576u})
        if (mtu - 28 < bytes) return mtu - 28;
    return kLeastDatagram;
}

}  // namespace starling::network
