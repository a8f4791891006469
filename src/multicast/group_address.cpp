#include "multicast/group_address.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

namespace starling::multicast {

namespace {

struct SipState {
    uint64_t a, b, c, d;
    void round() {
        a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
        c += d, d = std::rotl(d, 16) ^ c;
        a += d, d = std::rotl(d, 21) ^ a;
        c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
    }
    void take(uint64_t word) {
        d ^= word;
        round(), round();
        a ^= word;
    }
};

}  // namespace

uint64_t keyed_hash(const uint64_t (&key)[2], std::span<const uint64_t> words) {
    SipState state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
                   key[1] ^ 0x7465646279746573};
    for (const uint64_t word : words) state.take(word);
    state.take(static_cast<uint64_t>(words.size() * 8) << 56);
    state.c ^= 0xff;
    for (int i = 0; i < 4; ++i) state.round();
    return state.a ^ state.b ^ state.c ^ state.d;
}

int name_of(std::span<const link::Process> members, uint64_t number, transport::GroupName& out) {
    link::Job* lowest = members.front().job;
    bool one_job = true;
    for (const link::Process& member : members) {
        if (member.job->address().id < lowest->address().id) lowest = member.job;
        one_job = one_job && member.job == members.front().job;
    }
    if (!lowest->mapped())
        if (const int error = lowest->map()) return error;
    const auto& secret = lowest->segment().header().secret;
    std::vector<uint64_t> words{number};
    for (const link::Process& member : members) words.insert(words.end(), {member.job->address().id, member.rank});
    out.key = std::max<uint64_t>(keyed_hash(secret, words), 1);
    out.place = out.key;
    // The secret must not be derivable from the key, which is in every datagram. It consists of hashes of other words, which are
    // independent of the key.
    for (uint64_t i = 0; i < std::size(out.secret); ++i) {
        words.push_back(i);
        out.secret[i] = keyed_hash(secret, words);
        words.pop_back();
    }
    if (!one_job) return MPI_SUCCESS;
    // The place, from which the network address follows, depends on hosts only. Switches' tables hold addresses, so groups of other
    // processes on the same hosts need no more entries.
    words = {number};
    for (const link::Process& member : members) words.push_back(lowest->segment().host_of(member.rank));
    std::sort(words.begin() + 1, words.end());
    out.place = keyed_hash(secret, words);
    return MPI_SUCCESS;
}

}  // namespace starling::multicast
