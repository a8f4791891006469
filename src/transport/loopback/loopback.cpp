#include "transport/loopback/loopback.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "mpi.h"

namespace starling::loopback {

using transport::Completion;
using transport::RemoteKey;

LoopbackPath::LoopbackPath(Loopback& by, const transport::ProcessAddress& to, void* user) : transport::Path(by, to, user) {}
Loopback& LoopbackPath::loopback() const { return static_cast<Loopback&>(by); }

bool LoopbackPath::reserve(uint32_t bytes, transport::PacketSlot& slot) {
    LoopbackPacket* const entry = closed_ || bytes > kTraits.payload ? nullptr : loopback().queue_.reserve(bytes);
    if (!entry) return false;
    slot.payload = entry->payload();
    slot.header = &entry->header;
    slot.path = this;
    slot.place = entry;
    return true;
}

void LoopbackPath::commit(transport::PacketSlot& slot, uint32_t bytes) {
    slot.header->where = packet::PayloadLocation::here;
    slot.header->bytes = bytes;
    auto& entry = *static_cast<LoopbackPacket*>(slot.place);
    entry.target = this;
    loopback().queue_.push(entry, bytes);
    ++queued_;
    loopback().sink_.wake();
}

void LoopbackPath::close() {
    closed_ = true;
    loopback().queue_.each([this](LoopbackPacket& entry) {
        if (entry.target == this) entry.target = nullptr;
    });
    queued_ = 0;
}

int Loopback::attach(const transport::ProcessAddress& to, void* user, transport::Path*& out) {
    if (!reaches(to)) return fail(MPI_ERR_INTERN, "the loop-back transport reaches only its own process, not rank %u", to.rank);
    out = new LoopbackPath(*this, to, user);
    return MPI_SUCCESS;
}

void Loopback::detach(transport::Path& path) {
    path.close();
    delete &static_cast<LoopbackPath&>(path);
}

// Packets sent from within a delivery wait for the next poll, so that every poll ends.
bool Loopback::poll(PollUrgency) {
    bool any = report_completed();
    any |= report_group_events();
    for (uint32_t left = queue_.count(); left > 0; --left, any = true) {
        deliver(queue_.front());
        queue_.pop();
    }
    return any;
}

void Loopback::deliver(LoopbackPacket& entry) {
    const transport::Packet packet{entry.header, entry.payload()};
    auto* const path = static_cast<LoopbackPath*>(entry.target);
    if (!path) return;
    sink_.deliver(path->user, packet);
    if (entry.target) --path->queued_;
}

// Functions for registered memory. A key consists of a number that is never used again, and the length, so an invalid key is recognized.

void* Loopback::register_memory(transport::Path&, const void* memory, uint64_t bytes, bool, RemoteKey& key) {
    key = {{next_number_++, bytes}};
    registered_.emplace(key.word[0], RegisteredRange{static_cast<std::byte*>(const_cast<void*>(memory)), bytes});
    return reinterpret_cast<void*>(key.word[0]);
}

void Loopback::deregister(void* registration, bool) { registered_.erase(reinterpret_cast<uint64_t>(registration)); }

std::byte* Loopback::memory_at(const RemoteKey& region, uint64_t offset, uint64_t bytes, Completion& done) {
    done.done = false;
    const auto found = registered_.find(region.word[0]);
    const bool fits = found != registered_.end() && offset <= found->second.bytes && bytes <= found->second.bytes - offset;
    done.error = fits ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
    return fits ? found->second.memory + offset : nullptr;
}

// Queues the completion of an operation that was carried out at once. poll() reports it: no caller may depend on an immediate result.
int Loopback::complete(Completion& done) {
    done.next = completed_;
    completed_ = &done;
    return MPI_SUCCESS;
}

bool Loopback::report_completed() {
    Completion* first = nullptr;
    while (completed_) {
        Completion* const one = completed_;
        completed_ = one->next;
        one->next = first;
        first = one;
    }
    const bool any = first != nullptr;
    while (first) {
        Completion& one = *first;
        first = one.next;  // read before `one` is completed: its owner may then reuse it
        one.done = true;
        if (one.then) one.then(one);
    }
    return any;
}

int Loopback::put(transport::Path&, const RemoteKey& region, uint64_t offset, const void* from, uint64_t bytes,
                  Completion& done) {
    if (std::byte* const to = memory_at(region, offset, bytes, done)) std::memmove(to, from, bytes);
    return complete(done);
}

int Loopback::get(transport::Path&, const RemoteKey& region, uint64_t offset, void* into, uint64_t bytes, Completion& done) {
    if (const std::byte* const from = memory_at(region, offset, bytes, done)) std::memmove(into, from, bytes);
    return complete(done);
}

// Functions for groups. The next poll delivers a datagram to the members at that time.

int Loopback::join(const transport::GroupName& name, transport::DatagramHandler& audience,
                   std::unique_ptr<transport::MulticastMembership>& out) {
    auto member = std::make_unique<LoopbackMember>(*this, name.key, audience);
    members_.push_back(member.get());
    out = std::move(member);
    return MPI_SUCCESS;
}

LoopbackMember::~LoopbackMember() {
    std::erase(by_.members_, this);
    for (auto& datagram : by_.datagrams_)
        if (datagram.from == this) datagram.from = nullptr;
}

bool LoopbackMember::send(const iovec* parts, int count) {
    std::vector<std::byte> whole;
    for (int i = 0; i < count; ++i) {
        const auto* const part = static_cast<const std::byte*>(parts[i].iov_base);
        whole.insert(whole.end(), part, part + parts[i].iov_len);
    }
    by_.datagrams_.push_back({this, key_, std::move(whole)});
    by_.sink_.wake();
    return true;
}

bool Loopback::report_group_events() {
    const std::vector<LoopbackDatagram> all = std::move(datagrams_);
    datagrams_.clear();
    for (const LoopbackDatagram& datagram : all)
        for (const LoopbackMember* member : members_)
            if (member != datagram.from && member->key_ == datagram.key)
                member->audience_.datagram(datagram.bytes.data(), static_cast<uint32_t>(datagram.bytes.size()));
    return !all.empty();
}

}  // namespace starling::loopback
