// Exposed memory of a process, which others read, write and update. Carried out by the owner's progress, over whatever
// path leads to it: each access is cut into packets, each packet is answered. (Memory that a network card or a mapping
// could reach without the owner is reached this way too; MPI windows are not built yet.)
//
// All calls need the library's lock.
#pragma once

#include <cstdint>

#include "base/list.h"
#include "link/peer.h"
#include "progress/request.h"

namespace starling::window {

/// What others need in order to reach exposed memory. Means the same in every process, so it can be sent.
struct Exposure {
    uint64_t key = 0;    ///< random; an access that does not show it is refused
    uint64_t bytes = 0;  ///< of memory
    uint32_t id = 0;
    uint32_t reserved = 0;
};

/// Lets others reach `bytes` of memory at `base`, which must stay until withdraw().
Exposure expose(void* base, uint64_t bytes);
/// Accesses that come later are refused with MPI_ERR_RMA_RANGE.
void withdraw(const Exposure& exposure);

/// How a word is changed; `compare_swap` stores the operand if the word equals `compare`. All give the old value.
enum class Update : uint8_t { add, bit_and, bit_or, bit_xor, least, most, swap, compare_swap, fetch };

/// One access from its start until it is done, when everything has been carried out at the owner. Must not move
/// meanwhile. `outcome.error`: MPI_SUCCESS; MPI_ERR_RMA_RANGE with failure_text(): outside the exposure, or it has been
/// withdrawn; MPI_ERR_PROC_ABORTED: the owner is gone.
struct Access : progress::Request {
    uint64_t old = 0;  ///< of an update: the value before, when done

    // Not for users:
    enum class Kind : uint8_t { put, get, update } access = Kind::put;
    link::Peer* owner = nullptr;
    Exposure exposure;
    std::byte* memory = nullptr;
    uint64_t offset = 0, bytes = 0;
    uint64_t issued = 0;      ///< bytes asked for so far
    uint32_t unanswered = 0;  ///< packets
    uint32_t serial = 0;
    uint32_t generation = 0;  ///< tells answers to this access from late ones to another with its serial
    Update update = Update::fetch;
    uint8_t width = 0;
    uint64_t operand = 0, compare = 0;
    ListHook hook;  ///< accesses under way
};

/// Copies `bytes` from `data` to `offset` of the owner's exposure. `data` must stay until done.
void start_put(Access& access, link::Peer& owner, const Exposure& exposure, uint64_t offset, const void* data, uint64_t bytes);
/// Copies the other way.
void start_get(Access& access, link::Peer& owner, const Exposure& exposure, uint64_t offset, void* data, uint64_t bytes);
/// Changes a word of `width` 4 or 8 bytes, naturally aligned, in one step as all other updates of it see it, and as the
/// owner's own atomic instructions do. `least` and `most` compare signed.
void start_update(Access& access, link::Peer& owner, const Exposure& exposure, uint64_t offset, uint8_t width, Update update,
                  uint64_t operand, uint64_t compare = 0);

}  // namespace starling::window
