#include "window/lock.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/immortal.h"
#include "base/state.h"
#include "link/job.h"
#include "progress/engine.h"
#include "transport/packet.h"
#include "transport/shm/region.h"

namespace starling::window {

namespace {

enum class What : uint32_t { ask_shared = 1, ask_exclusive, grant, give_back };

struct LockMessage {
    uint64_t context;  ///< of the window's communicator
    int32_t rank;      ///< the sender's
    What what;
};
static_assert(sizeof(LockMessage) <= link::Control::kMost);

/// For windows that are not made here yet.
struct Early {
    link::Peer* peer;
    LockMessage message;
};
STARLING_STATE Immortal<std::vector<Early>> early_storage;
constinit auto& early = early_storage.value;

void tell(const Window& window, link::Peer& peer, What what) {
    const LockMessage message{window.comm->context(), window.rank(), what};
    link::send_control(peer, packet::Kind::window_lock, &message, sizeof message);
}

uint32_t place(const Window& window) { return static_cast<uint32_t>(window.my_place); }

/// Who waits for a lock of the target at that place looks again.
void ring_waiters(Window& window, uint32_t target) {
    window.board.each_waiter(target, [&window](uint32_t who) {
        if (who == place(window)) return progress::notify();
        const link::Process process = window.comm->local_group().at(window.neighbours[who]);
        job::ring(shm::Region(process.job->segment().region(process.rank)).doorbell());
    });
}

bool serve(Window& window, const Window::Claimant& claimant) {
    const uint32_t me = place(window);
    const bool had = claimant.exclusive ? window.board.try_exclusive(Board::holder_afar(claimant.rank), me)
                                        : window.board.try_shared_for_another(me);
    if (!had) return false;
    window.holders.push_back(claimant);
    tell(window, *claimant.peer, What::grant);
    return true;
}

void release_for(Window& window, std::vector<Window::Claimant>::iterator holder) {
    const uint32_t me = place(window);
    if (holder->exclusive)
        window.board.release_exclusive(me);
    else
        window.board.release_shared_for_another(me);
    window.holders.erase(holder);
    ring_waiters(window, me);
}

/// Those who have died hold nothing, and want nothing.
bool drop_dead(Window& window) {
    bool any = false;
    for (size_t i = window.holders.size(); i-- > 0;) {
        if (!window.holders[i].peer->dead) continue;
        release_for(window, window.holders.begin() + static_cast<ptrdiff_t>(i));
        any = true;
    }
    if (!window.pending.empty() && window.pending.front().peer->dead && window.pending.front().exclusive)
        window.board.withdraw_exclusive(Board::holder_afar(window.pending.front().rank), place(window));
    return std::erase_if(window.pending, [](const Window::Claimant& c) { return c.peer->dead; }) || any;
}

bool bury_neighbours(Window& window, uint32_t target) {
    return window.board.bury_holders(target, [&window](uint32_t who) {
        const link::Process process = window.comm->local_group().at(window.neighbours[who]);
        const link::Peer* peer = process.job->peer_if_met(process.rank);
        return peer && peer->dead;
    });
}

bool serve_pending(Window& window) {
    bool any = drop_dead(window);
    while (!window.pending.empty() && (serve(window, window.pending.front()) ||
                                       (bury_neighbours(window, place(window)) && serve(window, window.pending.front())))) {
        window.pending.pop_front();
        any = true;
    }
    window.board.set_pending(place(window), !window.pending.empty());
    return any;
}

bool poll_locks() {
    bool any = false;
    for (Window* window : windows())
        if (!window->pending.empty() || !window->holders.empty()) any |= serve_pending(*window);
    return any;
}

void take(Window& window, link::Peer& peer, const LockMessage& message) {
    switch (message.what) {
        case What::ask_shared:
        case What::ask_exclusive:
            window.pending.push_back({message.rank, &peer, message.what == What::ask_exclusive});
            serve_pending(window);
            return;
        case What::grant:
            if (message.rank >= 0 && message.rank < window.size()) remote(window, message.rank).granted = true;
            return;
        case What::give_back: {
            const auto holder = std::find_if(window.holders.begin(), window.holders.end(), [&](const Window::Claimant& c) {
                return c.rank == message.rank && c.peer == &peer;
            });
            if (holder == window.holders.end()) return;
            release_for(window, holder);
            serve_pending(window);
            return;
        }
    }
}

void on_lock_packet(link::Peer& peer, const link::Packet& packet) {
    LockMessage message;
    if (packet.header.bytes != sizeof message) return;
    std::memcpy(&message, packet.payload, sizeof message);
    if (Window* window = window_of(message.context)) return take(*window, peer, message);
    early.push_back({&peer, message});
}

int gone(const Remote& remote) { return fail(MPI_ERR_PROC_ABORTED, "rank %d of the window has ended", remote.rank); }

constexpr progress::WaitSite kForLock{};

int take_from_afar(Window& window, Remote& remote, Held kind) {
    link::Peer& peer = *remote.target.peer;
    remote.granted = false;
    tell(window, peer, kind == Held::exclusive ? What::ask_exclusive : What::ask_shared);
    progress::wait_until([&] { return remote.granted || peer.dead; }, kForLock);
    return remote.granted ? MPI_SUCCESS : gone(remote);
}

int take_on_board(Window& window, Remote& remote, Held kind) {
    const uint32_t me = place(window), target = static_cast<uint32_t>(remote.local);
    const auto had = [&] {
        return kind == Held::exclusive ? window.board.try_exclusive(Board::holder_here(me), target)
                                       : window.board.try_shared(me, target);
    };
    if (had()) return MPI_SUCCESS;
    window.board.begin_wait(me, target);
    bool taken = false;
    progress::wait_until(
        [&] {
            taken = had() || (bury_neighbours(window, target) && had());
            return taken || remote.target.peer->dead;
        },
        kForLock);
    window.board.end_wait(me);
    return taken ? MPI_SUCCESS : gone(remote);
}

}  // namespace

int take_lock(Window& window, Remote& remote, Held kind) {
    if (!remote.target.peer) return MPI_ERR_PROC_ABORTED;
    if (remote.target.peer->dead) return gone(remote);
    if (kind != Held::unchecked) {
        const int error = remote.local >= 0 ? take_on_board(window, remote, kind) : take_from_afar(window, remote, kind);
        if (error) return error;
    }
    remote.held = kind;
    return MPI_SUCCESS;
}

void give_back(Window& window, Remote& remote) {
    const Held held = remote.held;
    remote.held = Held::no;
    if (held == Held::unchecked || held == Held::no) return;
    if (remote.local < 0) return tell(window, *remote.target.peer, What::give_back);
    const auto target = static_cast<uint32_t>(remote.local);
    if (held == Held::exclusive)
        window.board.release_exclusive(target);
    else
        window.board.release_shared(place(window), target);
    ring_waiters(window, target);
}

void listen_for_locks() {
    if (link::takes_packets(packet::Kind::window_lock)) return;
    link::take_packets(packet::Kind::window_lock, on_lock_packet);
    progress::add_poller(poll_locks);
}

void take_early_messages(Window& window) {
    const uint64_t context = window.comm->context();
    std::vector<Early> mine;
    std::copy_if(early.begin(), early.end(), std::back_inserter(mine),
                 [&](const Early& e) { return e.message.context == context; });
    std::erase_if(early, [&](const Early& e) { return e.message.context == context; });
    for (const Early& e : mine) take(window, *e.peer, e.message);
}

}  // namespace starling::window
