// The description of a process group, which another job sends when it connects or spawns.
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

#include "comm/group.h"

using namespace starling;

namespace {

std::string seed(std::initializer_list<comm::GroupRun> runs) {
    comm::GroupBuilder builder;
    for (const comm::GroupRun& run : runs) builder.add(run);
    comm::Group* group = builder.build();
    std::string bytes = comm::encode(*group);
    group->release();
    return bytes;
}

}  // namespace

const std::string* fuzz_seeds(size_t& count) {
    link::Job* one = link::find_job({.id = 1, .owner_pid = 100, .owner_fd = 3});
    link::Job* two = link::find_job({.id = ~0ull, .owner_pid = 1, .owner_fd = 4});
    static const std::string seeds[] = {
        seed({}),
        seed({{one, 0, 1, 64}}),
        seed({{one, 5, -1, 3}, {two, 0, 7, 4}, {one, 9, 1, 1}}),
    };
    count = std::size(seeds);
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    comm::Group* group = comm::decode_group({reinterpret_cast<const char*>(data), size});
    if (!group) return 0;
    // A group that was accepted is usable: it has members and can be encoded again.
    const int members = group->size();
    if (members < 0) std::abort();
    if (members > 0 && !group->at(members - 1).job) std::abort();
    comm::Group* again = comm::decode_group(comm::encode(*group));
    if (!again || !again->identical(*group)) std::abort();
    again->release();
    group->release();
    return 0;
}
