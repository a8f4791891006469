// A datagram path to the peer, with its measurements: from a rail of ours to an address of the peer, or between two ports of InfiniBand or
// RoCE devices.
#pragma once

#include <cstdint>

#include "transport/network/wire/datagram.h"

namespace starling::network {

/// Time units, ns. The protocol's times below suit a network within one building and are much shorter than the internet's.
inline constexpr uint64_t kMicrosecond = 1000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
/// Delay of an acknowledgement, so that it travels with data or covers several datagrams.
inline constexpr uint64_t kAckDelay = 250 * kMicrosecond;
/// A sender without losses allows longer delays of acknowledgements, up to the time since its last loss divided by this. The limit is
/// relative because losses at the end of a burst are noticed later by the allowed delay.
inline constexpr uint64_t kHoldShare = 128;
inline constexpr uint64_t kCarrierAckDelay = 1 * kMillisecond;  ///< delay of an acknowledgement for data from a carrier
/// Delay of an acknowledgement for data from a device's connection. Such a connection loses nothing, so the delay only costs the sender
/// memory. After kDevicePatience the sender asks for the acknowledgement; only a peer that computes is that late.
inline constexpr uint64_t kDeviceAckDelay = 20 * kMillisecond, kDevicePatience = 100 * kMillisecond;
inline constexpr uint64_t kFirstTimeout = 20 * kMillisecond;  ///< retransmission timeout before the first measurement
inline constexpr uint64_t kMostTimeout = 1000 * kMillisecond;
inline constexpr uint64_t kRefusedWait = 20 * kMillisecond;     ///< wait before the next attempt if the kernel has no route
inline constexpr uint64_t kProbeInterval = 250 * kMillisecond;  ///< interval between probes of a suspended path

/// The round-trip time, smoothed as in RFC 6298; ns.
class RoundTrip {
  public:
    void sample(uint64_t ns);
    uint64_t smoothed() const { return smoothed_; }  ///< smoothed round-trip time, ns; 0: never measured
    uint64_t latest() const { return latest_; }
    /// Returns the retransmission timeout: two round trips (RFC 8985, tail loss probes), more if they vary, plus the time for which the
    /// peer may delay its answer. Its only floor is the measured time, since asking too early costs just one datagram.
    uint64_t timeout() const;

  private:
    uint64_t smoothed_ = 0, deviation_ = 0, latest_ = 0;
};

/// The congestion window, in bytes. It begins with slow start, then grows by one datagram per round trip and shrinks by three tenths per
/// round trip with losses. The numbers are those of RFC 5681, except for the gentler cut of RFC 9438.
class CongestionWindow {
  public:
    static constexpr uint32_t kFirst = 16;  ///< datagrams
    /// Least window, in datagrams, also after losses, so that acknowledgements keep arriving.
    static constexpr uint32_t kLeast = 4;

    void set_datagram(uint32_t bytes);
    /// Sets the upper limit of the window.
    void set_most(uint64_t bytes) { most_ = bytes; }
    uint64_t bytes() const { return bytes_; }
    /// Adapts the window after `bytes` were acknowledged. `full`: the window had kept more data from being sent.
    void acknowledged(uint64_t bytes, bool full);
    /// Shrinks the window, because the datagram with number `order` (per path) is lost; `next` is the number of the next one to be sent.
    /// Shrinks at most once per window of datagrams: datagrams sent before the last cut say nothing about the reduced window.
    void lost(uint64_t order, uint64_t next);
    /// Begins again with slow start, because much was lost after a long time without answers. `next`: number of the next datagram to be
    /// sent.
    void collapse(uint64_t next);

  private:
    uint64_t datagram_ = 1472;
    uint64_t bytes_ = kFirst * 1472;
    uint64_t threshold_ = UINT64_MAX;
    uint64_t most_ = 1 << 20;
    uint64_t recovery_end_ = 0;
};

/// The destination of datagrams: our rail, the peer's address in network byte order, and its port in host byte order. On a verbs route
/// `remote` is the queue number of the peer's port, and `port` that port's index in the peer's list.
struct Route {
    uint32_t remote = 0;
    uint16_t port = 0;
    uint16_t rail = 0;  ///< index into Rails; from kVerbs on, index into verbs::Ports

    static constexpr uint16_t kVerbs = 0x100, kVerbsEnd = 0x200;
    bool by_verbs() const { return rail >= kVerbs && rail < kVerbsEnd; }
    bool operator==(const Route&) const = default;
};

struct SessionPath {
    Route route;
    bool present = false;
    bool preferred = false;  ///< whether it is a verbs path: no other path is used while a preferred one answers
    /// Whether the path is only probed: it is silent while others answer, or is preferred and never answered.
    bool suspended = false;
    uint8_t probes = 0;  ///< number of probes sent since the path was made, if it has never answered
    /// Number and send time (ns, 0: it was answered) of the last probe of a suspended path. The probe is not counted as in flight, since
    /// one that stays unanswered would hold the records of all later datagrams.
    uint32_t probe = 0;
    uint64_t probe_sent_at = 0;
    bool full = false;    ///< whether the congestion window has kept data from being sent since the last acknowledgement
    bool credit = false;  ///< whether one datagram may be sent although the window is full: the timer asks for an answer
    uint8_t backoff = 0;  ///< number of consecutive timeouts
    /// The detection of datagrams that are too long for the path. `big_losses`: losses of datagrams above the least size; reset when one as
    /// long as `longest_lost` arrives. `longest_lost`: length of the longest lost datagram, bytes. `small_arrived`: a shorter one has
    /// arrived meanwhile.
    uint8_t big_losses = 0;
    bool small_arrived = false;
    uint32_t longest_lost = 0;
    uint32_t datagram = 0;       ///< longest datagram to send, UDP payload bytes
    uint32_t datagram_most = 0;  ///< limit of the rail, bytes; `datagram` starts there and may have been reduced
    uint64_t in_flight = 0;      ///< bytes in flight, including kDatagramCost per datagram
    uint64_t next_order = 1;     ///< number of the next datagram on this path
    uint64_t best_order = 0;     ///< highest number that is known to have arrived
    uint64_t last_sent = 0;      ///< time (ns) when the last datagram that requires an answer was sent
    uint64_t since_request = 0;  ///< number of bytes sent since an acknowledgement was requested
    uint64_t unanswered_at = 0;  ///< time (ns) of the first of the consecutive timeouts
    /// Whether the path was unanswered for so long that no new data is sent, only the timer's retransmissions and probes.
    bool quiet = false;
    RoundTrip round_trip;
    CongestionWindow window;

    bool usable() const { return present && !suspended; }
    bool proven() const { return round_trip.smoothed() != 0; }
    bool has_room() const { return credit || in_flight == 0 || (!quiet && in_flight < window.bytes()); }
    /// Returns the time (ns) of the retransmission if no answer arrives. `held`: ns for which the peer may delay its acknowledgement beyond
    /// kAckDelay.
    uint64_t timeout_at(uint64_t held) const;
};

/// Cost of a datagram besides its contents, bytes: headers, and the kernels' bookkeeping of buffers.
inline constexpr uint32_t kDatagramCost = 256;

/// Returns the next smaller datagram size worth trying if `bytes` does not get through.
uint32_t next_smaller_datagram(uint32_t bytes);
/// Least datagram length, UDP payload bytes: every IPv4 host accepts IP packets of 576 bytes.
inline constexpr uint32_t kLeastDatagram = 576 - 28;
/// Greatest datagram length, UDP payload bytes. Longer ones are not sent even if the link takes them: the benefit is small, and receivers
/// need larger buffers.
inline constexpr uint32_t kMostDatagram = 9000 - 28;

}  // namespace starling::network
