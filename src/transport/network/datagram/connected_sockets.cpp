// The choice of the peers that get a connected socket (a lane): those with the most traffic, as long as it lasts.
#include <sys/epoll.h>

#include <algorithm>

#include "transport/network/datagram/endpoint_state.h"

namespace starling::network {

namespace {
constexpr uint32_t kHot = 64;  ///< recent datagrams to a peer that justify a lane
/// Factor by which a peer's recent datagrams must exceed those of another peer to take over that peer's lane.
constexpr uint32_t kHotter = 4;
}  // namespace

// Returns the peer's count of recent datagrams: halved for each interval since it was updated.
uint32_t Endpoint::EndpointState::heat_of(const EndpointPeer& member) const {
    return member.heat >> std::min<uint64_t>(span - member.heated_at, 31);
}

int Endpoint::EndpointState::lane_for(EndpointPeer& member, const Destination& where) {
    member.heat = heat_of(member) + 1;
    member.heated_at = span;
    if (member.lane != Destination::kNoLane) [[likely]]
        return lanes[member.lane].where.same_place(where) ? member.lane : Destination::kNoLane;
    return member.heat % kHot == 0 ? seek_lane(member, where) : Destination::kNoLane;
}

int Endpoint::EndpointState::seek_lane(EndpointPeer& member, const Destination& where) {
    // Lanes are opened one by one: another only when all open ones are in use.
    ConnectedSocket* coldest = lanes;
    for (ConnectedSocket& lane : lanes) {
        if (!lane.user || heat_of(*lane.user) < heat_of(*coldest->user)) coldest = &lane;
        if (!lane.user) break;
    }
    if (coldest->user && heat_of(*coldest->user) * kHotter > member.heat) return Destination::kNoLane;
    const int index = static_cast<int>(coldest - lanes);
    const int fd = udp.point_lane(index, where);
    if (fd < 0) return Destination::kNoLane;
    if (!coldest->open) {
        epoll_event readable{};
        readable.events = EPOLLIN;
        readable.data.u64 = Udp::bit_of(index);
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &readable) != 0) return Destination::kNoLane;
    }
    if (coldest->user) coldest->user->lane = Destination::kNoLane;
    *coldest = {&member, where, true};
    ++totals.lanes;
    return member.lane = index;
}

void Endpoint::EndpointState::leave_lane(EndpointPeer& member) {
    if (member.lane == Destination::kNoLane) return;
    lanes[member.lane].user = nullptr;
    member.lane = Destination::kNoLane;
}

}  // namespace starling::network
