// One way to the peer by datagrams: a rail of ours and an address of theirs, or two ports of InfiniBand or RoCE devices, with what was
// measured on it.
#pragma once

#include <cstdint>

#include "transport/network/wire/datagram.h"

namespace starling::network {

/// Protocol times, ns. Made for one building: nothing here waits for as long as the internet needs.
inline constexpr uint64_t kMicrosecond = 1000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
inline constexpr uint64_t kAckDelay = 250 * kMicrosecond;  ///< an acknowledgement waits so long for company, or longer:
/// An allowance of the sender's, since what is lost last is missed so much later: this part of the time since it lost something.
inline constexpr uint64_t kHoldShare = 128;
inline constexpr uint64_t kCarrierAckDelay = 1 * kMillisecond;  ///< one for what came over a carrier
/// The same of a device's, which loses nothing: then only the sender's memory waits. And when to ask for it: nothing but a peer that computes keeps it.
inline constexpr uint64_t kDeviceAckDelay = 20 * kMillisecond, kDevicePatience = 100 * kMillisecond;
inline constexpr uint64_t kFirstTimeout = 20 * kMillisecond;  ///< before anything was measured
inline constexpr uint64_t kMostTimeout = 1000 * kMillisecond;
inline constexpr uint64_t kRefusedWait = 20 * kMillisecond;     ///< when the kernel knows no way at all
inline constexpr uint64_t kProbeInterval = 250 * kMillisecond;  ///< of paths that seem dead

/// The round-trip time as RFC 6298 smooths it; ns.
class RoundTrip {
  public:
    void sample(uint64_t ns);
    uint64_t smoothed() const { return smoothed_; }  ///< 0: never measured
    uint64_t latest() const { return latest_; }
    /// When to ask again for an answer: two round trips (RFC 8985, tail loss probes), more if they vary, plus what the peer
    /// may hold it back. The floor is what was measured: asking costs one datagram, even if the answer is on its way.
    uint64_t timeout() const;

  private:
    uint64_t smoothed_ = 0, deviation_ = 0, latest_ = 0;
};

/// How much may be under way: slow start, then one datagram more per round trip, a cut by three tenths per round
/// trip with losses (the numbers of RFC 5681, with the gentler cut of RFC 9438). Bytes.
class CongestionWindow {
  public:
    static constexpr uint32_t kFirst = 16;  ///< datagrams
    static constexpr uint32_t kLeast = 4;   ///< datagrams, also after losses: two to keep acknowledgements coming

    void set_datagram(uint32_t bytes);
    /// Never grows beyond this.
    void set_most(uint64_t bytes) { most_ = bytes; }
    uint64_t bytes() const { return bytes_; }
    /// `bytes` were acknowledged. `full`: the window was what kept more from being sent.
    void acknowledged(uint64_t bytes, bool full);
    /// The datagram with this number (per path) is lost; `next` is the number of the next to be sent. Cuts once per
    /// window: losses of datagrams sent before the last cut are its cause, not its result.
    void lost(uint64_t order, uint64_t next);
    /// Nothing came back for long, and then it turned out that much was lost: it begins anew, as fast as at first.
    /// `next` as above.
    void collapse(uint64_t next);

  private:
    uint64_t datagram_ = 1472;
    uint64_t bytes_ = kFirst * 1472;
    uint64_t threshold_ = UINT64_MAX;
    uint64_t most_ = 1 << 20;
    uint64_t recovery_end_ = 0;
};

/// Where datagrams go: our rail and their address. Addresses in network byte order, the port in the host's. By verbs: the number of their
/// port's queue, and which of the ports that they have told it is.
struct Route {
    uint32_t remote = 0;
    uint16_t port = 0;
    uint16_t rail = 0;  ///< index into Rails; from kVerbs on: of verbs::Ports

    static constexpr uint16_t kVerbs = 0x100, kVerbsEnd = 0x200;
    bool by_verbs() const { return rail >= kVerbs && rail < kVerbsEnd; }
    bool operator==(const Route&) const = default;
};

struct Path {
    Route route;
    bool present = false;
    bool preferred = false;  ///< by verbs: no other is used while it, or another such one, answers
    bool suspended = false;  ///< it does not answer while others do, or it is preferred and has never answered: only probed
    uint8_t probes = 0;      ///< since it was made, of one that has never answered
    /// Number and time of the last probe while it was suspended; 0: it was answered. It is not counted as under way, or one that is not
    /// answered for long would hold the records of all that is sent after it.
    uint32_t probe = 0;
    uint64_t probe_sent_at = 0;
    bool full = false;    ///< the congestion window kept something from being sent since the last acknowledgement
    bool credit = false;  ///< one datagram may go though the window is full: the timer asks for an answer
    uint8_t backoff = 0;  ///< timeouts in a row
    /// Datagrams lost, none of them above the least size, since one as long as the longest of them arrived; how long that is, and
    /// whether a shorter one has arrived meanwhile: then they are too long for the way.
    uint8_t big_losses = 0;
    bool small_arrived = false;
    uint32_t longest_lost = 0;
    uint32_t datagram = 0;       ///< longest datagram, UDP payload bytes
    uint32_t datagram_most = 0;  ///< what the rail allows; `datagram` may have been found to be less
    uint64_t in_flight = 0;      ///< bytes, with what each datagram costs besides its contents
    uint64_t next_order = 1;     ///< datagrams sent on it are numbered
    uint64_t best_order = 0;     ///< highest that is known to have arrived
    uint64_t last_sent = 0;      ///< ns, of what wants an answer
    uint64_t since_ask = 0;      ///< bytes sent since an acknowledgement was asked for
    uint64_t unanswered_at = 0;  ///< ns, of the first timeout in the row
    bool quiet = false;          ///< nothing was answered for so long that nothing new is sent, only what the timer asks with
    RoundTrip round_trip;
    CongestionWindow window;

    bool usable() const { return present && !suspended; }
    bool proven() const { return round_trip.smoothed() != 0; }
    bool has_room() const { return credit || in_flight == 0 || (!quiet && in_flight < window.bytes()); }
    /// When to act if nothing comes back.
    /// `held`: how long the peer was allowed to hold back its acknowledgement, besides kAckDelay, ns.
    uint64_t timeout_at(uint64_t held) const;
};

/// What a datagram costs on the way besides its contents: headers, and the kernels' bookkeeping of buffers.
inline constexpr uint32_t kDatagramCost = 256;

/// Datagram sizes worth trying when a longer one does not get through: the next below `bytes`.
uint32_t next_smaller_datagram(uint32_t bytes);
/// Every IPv4 host takes datagrams of 576 bytes.
inline constexpr uint32_t kLeastDatagram = 576 - 28;
/// Longer ones are not sent even where the link would take them: it buys little and receivers hold buffers.
inline constexpr uint32_t kMostDatagram = 9000 - 28;

}  // namespace starling::network
