// Datagrams of a job that encrypts: sealed as the last step of sending, and opened before any of their contents is used.
#include <cstring>

#include "base/error.h"
#include "mpi.h"
#include "transport/network/datagram/endpoint_state.h"

namespace starling::network {

namespace {
constexpr size_t kPlace = (kMostDatagram + 63) / 64 * 64;
/// Number of buffers: one more than the datagrams that may be queued, which stay in these buffers until they are sent.
constexpr uint32_t kPlaces = Udp::kBatch + 1;
}  // namespace

int Endpoint::EndpointState::open_sealing() {
    if (!upcalls.secret) return fail(MPI_ERR_INTERN, "encryption needs the upcall `secret`");
    auto made = std::make_unique<Sealing>();
    if (const int error = Cipher::load(made->cipher)) return error;
    made->places = std::make_unique_for_overwrite<std::byte[]>(kPlaces * kPlace);
    made->secret = identity.secret;
    seal_bytes = kSealBytes;
    sealing = std::move(made);
    return MPI_SUCCESS;
}

/// Creates the DatagramLock (keys and replay window) for a peer. Returns null if the secret of the peer's job is not known yet, or the job
/// has none.
std::unique_ptr<DatagramLock> Endpoint::EndpointState::make_lock(const PeerName& peer) {
    const job::NetworkSecret* const theirs = upcalls.secret(upcalls.context, peer.job, peer.rank);
    if (!theirs || !*theirs) return nullptr;
    const SealKey pair = pair_key(*sealing->cipher, self, sealing->secret, peer, *theirs);
    return std::make_unique<DatagramLock>(*sealing->cipher, pair, self, peer);
}

/// Returns the DatagramLock for a peer that link knows, created if there is none.
DatagramLock* Endpoint::EndpointState::lock_with(const PeerName& peer) {
    const auto found = sealing->locks.find(peer);
    if (found != sealing->locks.end()) return found->second.get();
    std::unique_ptr<DatagramLock> made = make_lock(peer);
    return made ? sealing->locks.emplace(peer, std::move(made)).first->second.get() : nullptr;
}

void Endpoint::EndpointState::forget_locks(job::JobId job) {
    std::erase_if(sealing->locks,
                  [&](const auto& entry) { return entry.first.job == job && members.find(entry.first) == members.end(); });
}

/// Copies the parts into one buffer and seals them. `sealed` refers to a buffer that stays valid until the datagram has been sent.
void Endpoint::EndpointState::seal(const EndpointPeer& member, const iovec* parts, int count, iovec (&sealed)[2]) {
    std::byte* const place = sealing->places.get() + sealing->next * kPlace;
    sealing->next = (sealing->next + 1) % kPlaces;
    size_t bytes = 0;
    for (int i = 0; i < count; ++i) {
        std::memcpy(place + bytes, parts[i].iov_base, parts[i].iov_len);
        bytes += parts[i].iov_len;
    }
    member.lock->seal(place, static_cast<uint32_t>(bytes));
    sealed[0] = {place, kClearHead};
    sealed[1] = {place + kClearHead, bytes + kSealBytes - kClearHead};
}

/// Decrypts a sealed datagram in place. Returns false if the datagram must not be processed now; `kept` is set if it must be stored until
/// its sender's job is known.
bool Endpoint::EndpointState::unseal(ReceivedDatagram& arrival, bool& kept) {
    kept = false;
    if (!may_be_sealed(arrival.data, arrival.bytes, identity.key, identity.rank)) {
        ++totals.rejected;
        return false;
    }
    const PeerName from = sender_of(arrival.data);
    const auto known = sealing->locks.find(from);
    // Store a new lock only after it has opened a datagram, since any host can claim to be any sender.
    std::unique_ptr<DatagramLock> fresh;
    if (known == sealing->locks.end()) {
        fresh = make_lock(from);
        kept = !fresh;
        if (kept) return false;
    }
    DatagramLock& lock = fresh ? *fresh : *known->second;
    switch (lock.open(arrival.data, arrival.bytes, arrival.is_new)) {
        case DatagramLock::Opened::unauthenticated:
            ++totals.rejected;
            return false;
        case DatagramLock::Opened::stale:
            ++totals.stale;
            return false;
        case DatagramLock::Opened::yes:
            break;
    }
    arrival.bytes -= kSealBytes;
    arrival.opened = true;
    if (fresh) sealing->locks.emplace(from, std::move(fresh));
    return true;
}

const Cipher* Endpoint::cipher() const { return state_->sealing ? state_->sealing->cipher.get() : nullptr; }

SealKey Endpoint::pair_with(const Session& session) const {
    const DatagramLock* const lock = static_cast<const EndpointPeer&>(session).lock;
    return lock ? lock->pair() : SealKey();
}

}  // namespace starling::network
