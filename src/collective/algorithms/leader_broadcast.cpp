#include "collective/algorithms/leader_broadcast.h"

#include <algorithm>

#include "collective/algorithms/multicast_awaiters.h"
#include "collective/core/binomial.h"
#include "collective/core/buffers.h"

namespace starling::collective {

namespace {

/// Messages longer than kWhole bytes are sent down the tree in segments of kSegment bytes.
constexpr uint64_t kWhole = 128 * 1024, kSegment = kWhole / 2;

/// The longest wait for space in the group. Members that do not poll acknowledge nothing, and may not poll before this operation has
/// completed, so a longer wait is unlikely to pay.
constexpr uint64_t kRootPatienceNs = 5'000'000;

/// The tree by which the message is sent if multicast is not used.
class BroadcastDown {
  public:
    BroadcastDown(const View& v, int root, uint64_t bytes) : binomial_(v, root), bytes_(bytes) {
        if (segments() > 1)
            for (int child = 2 * binomial_.relative + 1; child <= 2 * binomial_.relative + 2 && child < v.n; ++child)
                children_[count_++] = (child + root) % v.n;
        else
            binomial_.each_child([&](int child) { children_[count_++] = child; });
        parent_ = segments() > 1 ? ((binomial_.relative - 1) / 2 + root) % v.n : binomial_.parent();
    }
    bool is_root() const { return binomial_.is_root(); }
    int parent() const { return parent_; }
    int children() const { return count_; }
    int child(int i) const { return children_[i]; }
    uint64_t segments() const { return bytes_ <= kWhole ? 1 : (bytes_ + kSegment - 1) / kSegment; }
    uint64_t begin(uint64_t segment) const { return segment * kSegment; }
    uint64_t length(uint64_t segment) const { return segments() == 1 ? bytes_ : std::min(kSegment, bytes_ - begin(segment)); }

  private:
    const Binomial binomial_;
    const uint64_t bytes_;
    int parent_ = 0, count_ = 0;
    int children_[32];
};

/// Sends a message down the tree, beginning with the first segment, which has arrived; later segments come from the parent. With an error,
/// sends error markers in place of the first segment, and nothing afterwards.
Task descend(View v, const BroadcastDown& way, std::byte* data, bool receives) {
    const bool sends = v.error == MPI_SUCCESS;
    for (uint64_t i = 0; i < way.segments(); ++i) {
        const bool more = receives && i + 1 < way.segments();
        RequestGroup both(v, way.children(), more);
        if (sends || i == 0)
            for (int child = 0; child < way.children(); ++child)
                both.send(data + way.begin(i), static_cast<int64_t>(way.length(i)), byte_type(), way.child(child));
        if (more) both.receive(data + way.begin(i + 1), static_cast<int64_t>(way.length(i + 1)), byte_type(), way.parent());
        co_await both;
    }
    co_return v.error;
}

}  // namespace

Task leader_broadcast(View v, void* buffer, int64_t count, const Datatype& type, int root) {
    PackedBuffer packed(buffer, count, type);
    const BroadcastDown way(v, root, packed.bytes());
    const uint64_t call = v.exchange->call_number(v.tag);
    if (way.is_root()) {
        packed.load();
        multicast::MulticastSend send;
        if (v.error == MPI_SUCCESS) co_await SpaceAwaiter(*v.cast, packed.bytes(), kRootPatienceNs);
        // If this rank has an error, it skips the multicast, because only the tree carries error markers.
        if (v.error == MPI_SUCCESS && v.cast->start_send(send, call, packed.data(), packed.bytes())) {
            co_await RequestDone{send};
            v.note(progress::error_of(send));
            co_return v.error;
        }
        co_return co_await descend(v, way, packed.data(), false);
    }
    const bool had_error = v.error != MPI_SUCCESS;
    EitherReceive either(v, packed.data(), packed.bytes(), way.length(0), {root, way.parent(), call});
    either.start();
    const EitherReceive::By by = co_await either;
    if (by == EitherReceive::By::coming) co_await either.parent();
    const bool arrived = either.end(by);
    // After a failed multicast the parent may still send its segments, which are then discarded.
    if (by == EitherReceive::By::group && either.group_failed())
        for (uint64_t i = 0; i < way.segments(); ++i) v.exchange->throw_away(way.length(i), v.participant(way.parent()), v.tag);
    const bool from_parent = by != EitherReceive::By::group;
    if (from_parent || v.error != MPI_SUCCESS) v.note(co_await descend(v, way, packed.data(), from_parent && arrived));
    if (v.error == MPI_SUCCESS && !had_error) packed.store();
    co_return v.error;
}

}  // namespace starling::collective
