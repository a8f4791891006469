// RMA access packets of other processes: arbitrary ones, and well-formed ones with false contents. Nothing outside of the region may be
// read or written, and a refused access must not change anything.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "rma/region.h"
#include "rma/target_side.h"
#include "rma/update.h"

using namespace starling;
using namespace starling::rma;

namespace {

constexpr size_t kBytes = 600, kAround = 4096;
constexpr std::byte kUntouched{0xa5};

/// A region within memory that must not change, and a region of addresses with two parts of that memory attached.
struct Target {
    Target() {
        key = expose(memory.data() + kAround, kBytes, &exclusion);
        addresses = expose_addresses();
        attach(addresses, memory.data() + kAround, 100);
        attach(addresses, memory.data() + kAround + 300, 300);
    }
    ~Target() {
        withdraw(key);
        withdraw(addresses);
        clear_failure();
    }
    void check() const {
        for (size_t i = 0; i < memory.size(); ++i) {
            const bool inside = i >= kAround && i < kAround + kBytes;
            if (!inside && memory[i] != kUntouched) std::abort();
        }
        if (guard.holder.load() != 0) std::abort();
    }
    void take(uint8_t operation, const std::byte* payload, uint32_t bytes) {
        // `copy` has exactly the payload's size, so that a sanitizer detects reads past its end.
        const std::vector<std::byte> before = memory, copy(payload, payload + bytes);
        packet::Header header{};
        header.kind = packet::PacketKind::access;
        header.operation = operation;
        header.bytes = bytes;
        std::vector<std::byte> result;
        const AccessOperation came = do_access({header, copy.data()}, result);
        check();
        if (came == AccessOperation::refused && (memory != before || !result.empty())) std::abort();
        if (result.size() > kMostBytes) std::abort();
    }

    std::vector<std::byte> memory = std::vector<std::byte>(kAround + kBytes + kAround, kUntouched);
    Guard guard{};
    UpdateMark mark{};
    UpdateLock exclusion{guard, &mark, 1, 0, 0};
    RegionKey key, addresses;
};

/// The bytes of the fuzzer's input that describe one packet.
struct Recipe {
    uint8_t operation, liar, runs, op;
    uint16_t element, data;
    uint32_t bytes;
    struct {
        uint64_t offset;
        uint32_t bytes;
    } run[3];
};

void take_recipe(Target& target, const Recipe& recipe) {
    const bool by_address = recipe.liar & 64;
    const RegionKey& key = by_address ? target.addresses : target.key;
    AccessPacket says{key.secret,
                      key.id,
                      recipe.runs % 4u,
                      0,
                      static_cast<uint16_t>(0x200 + recipe.element % 256),
                      static_cast<uint16_t>(0x20 + recipe.op % 32)};
    if (recipe.liar & 1) says.secret ^= recipe.bytes;
    if (recipe.liar & 2) says.runs = recipe.bytes;
    if (recipe.liar & 4) says.element = recipe.element;
    const uint64_t base = by_address ? reinterpret_cast<uintptr_t>(target.memory.data() + kAround) : 0;
    std::string runs;
    for (uint32_t i = 0; i < recipe.runs % 4u && i < 3; ++i) {
        BlockRun run{recipe.run[i].offset, recipe.run[i].bytes};
        if (!(recipe.liar & 8)) run.offset = base + run.offset % (kBytes + 16);
        if (!(recipe.liar & 16)) run.bytes = run.bytes % 8 * 16;
        says.bytes += static_cast<uint32_t>(run.bytes);
        runs.append(reinterpret_cast<const char*>(&run), sizeof run);
    }
    if (recipe.liar & 32) says.bytes = recipe.bytes;
    const auto operation = static_cast<AccessOperation>(recipe.operation % 12);
    const bool swaps = operation == AccessOperation::compare_swap;
    const size_t data = recipe.liar & 128                   ? recipe.data
                        : operation == AccessOperation::get ? 0
                                                            : says.bytes * (swaps ? 2u : 1u);
    std::string payload(reinterpret_cast<const char*>(&says), sizeof says);
    payload += runs;
    payload.append(std::min<size_t>(data, 20000), 'd');
    target.take(static_cast<uint8_t>(operation), reinterpret_cast<const std::byte*>(payload.data()),
                static_cast<uint32_t>(payload.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    Target target;
    if (size > 0) target.take(data[0] % 12, reinterpret_cast<const std::byte*>(data + 1), static_cast<uint32_t>(size - 1));
    for (; size >= sizeof(Recipe); data += sizeof(Recipe), size -= sizeof(Recipe)) {
        Recipe recipe;
        std::memcpy(&recipe, data, sizeof recipe);
        take_recipe(target, recipe);
    }
    return 0;
}

const std::string* fuzz_seeds(size_t& count) {
    static std::string seeds[4];
    uint32_t state = 1;
    const auto random = [&state] { return (state = state * 1664525 + 1013904223) >> 8; };
    for (std::string& seed : seeds)
        for (int i = 0; i < 20; ++i) {
            Recipe recipe{};
            recipe.operation = static_cast<uint8_t>(random() % 5 + 1), recipe.runs = static_cast<uint8_t>(random() % 3 + 1);
            recipe.op = static_cast<uint8_t>(random()), recipe.element = static_cast<uint16_t>(random());
            recipe.liar = random() % 2 ? 0 : static_cast<uint8_t>(1 << random() % 8);
            recipe.data = static_cast<uint16_t>(random()), recipe.bytes = random();
            for (auto& run : recipe.run) run.offset = random(), run.bytes = random();
            seed.append(reinterpret_cast<const char*>(&recipe), sizeof recipe);
        }
    count = std::size(seeds);
    return seeds;
}
