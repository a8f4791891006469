// Puts, gets and updates: by load and store where the memory is mapped, otherwise by packets that the owner handles or by the kernel's
// copy.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/long_copy.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "collective/core/buffers.h"
#include "datatype/construct.h"
#include "progress/engine.h"
#include "shmem/elements.h"
#include "shmem/entry.h"
#include "shmem/team.h"

namespace starling::shmem {

namespace {

using collective::byte_type;
using AccessOperation = rma::AccessOperation;

/// An access of memory that is not mapped in this process.
struct ShmemAccess : rma::Access {
    static constexpr uint32_t kMagic = 0x53684f70;
    std::atomic<uint32_t>* open = nullptr;  ///< counter of accesses in progress, of this access's context
    bool awaited = false;                   ///< whether a function waits for the access and destroys it
    std::byte value[16];                    ///< operand of an update
    datatype::TypeRef there_type;           ///< type of the remote block if that is not contiguous
    std::vector<std::byte> packed;          ///< data of a put whose source is not contiguous
};

STARLING_STATE NoDestroy<Pool<ShmemAccess>> access_pool_storage;
constinit auto& access_pool = access_pool_storage.value;

[[noreturn]] void complain_of(const rma::Target& target) { complain("%s", target.sentence.c_str()); }

void over(rma::Access& access) {
    auto& operation = static_cast<ShmemAccess&>(access);
    if (access.outcome.error) complain_of(*access.target);
    operation.open->fetch_sub(1, std::memory_order_relaxed);
    if (!operation.awaited) access_pool.destroy(&operation);
}

ShmemAccess& begin(const ShmemContext& context, AccessOperation what) {
    ShmemAccess& operation = *access_pool.create();
    operation.operation = what;
    operation.open = context.open;
    operation.over = over;
    context.open->fetch_add(1, std::memory_order_relaxed);
    return operation;
}

/// Selects how to access memory that is not mapped. The kernel copies a neighbor's variables without the help of their owner. The kernel
/// must not copy single words: many kernels copy these byte by byte, so other processes might see half a word. It must not copy while
/// earlier accesses are in progress either, because these must be carried out first.
void choose_way(RemotePe& remote, const Spot& spot, uint64_t bytes) {
    rma::Target& target = remote.target(spot.area);
    const bool by_kernel = spot.area == Area::data && remote.pid != 0 && bytes > 8 && target.open == 0;
    target.pid = by_kernel ? remote.pid : 0;
    target.address = remote.data;
}

void start(ShmemAccess& operation, RemotePe& remote, const Spot& spot, uint64_t bytes) {
    choose_way(remote, spot, bytes);
    rma::Target& target = remote.target(spot.area);
    const bool by_kernel = target.pid != 0;
    rma::start(operation, target);
    if (by_kernel && target.pid == 0) remote.pid = 0;  // forbidden
}

/// Waits until the data of a put has left the program's buffer.
void wait_until_issued(ShmemAccess& operation) {
    progress::wait_until(
        [](void* o) {
            const auto& put = *static_cast<const ShmemAccess*>(o);
            return put.done || put.issued == put.bytes;
        },
        &operation, rma::kForAccess);
    operation.awaited = false;
    if (operation.done) access_pool.destroy(&operation);
}

void wait_until_done(ShmemAccess& operation) {
    progress::wait(operation, rma::kForAccess);
    access_pool.destroy(&operation);
}

/// Makes progress now and then, as poll_after_load() of oshmem/mapped_heap.h does: a PE that reads memory until it changes must handle the accesses
/// of other PEs meanwhile.
void poll_after_load() {
    constexpr uint32_t kLooks = 32;
    if (starling_shmem_near.polls.fetch_add(1, std::memory_order_relaxed) % kLooks == kLooks - 1) progress::test();
}

void put(const ShmemContext& context, RemotePe& remote, const Spot& spot, const void* source, uint64_t bytes, bool nbi) {
    if (std::byte* there = mapped(remote, spot)) {
        copy_long(there, source, bytes);
        rma::count_in_memory(remote.target(spot.area), AccessOperation::put, bytes);
        return note_store(remote);
    }
    ShmemAccess& operation = begin(context, AccessOperation::put);
    operation.origin = {const_cast<void*>(source), static_cast<int64_t>(bytes), &byte_type()};
    operation.remote_block = {spot.offset, static_cast<int64_t>(bytes), &byte_type()};
    operation.awaited = !nbi;
    start(operation, remote, spot, bytes);
    if (!nbi) wait_until_issued(operation);
}

void get(const ShmemContext& context, RemotePe& remote, const Spot& spot, void* dest, uint64_t bytes, bool nbi) {
    if (const std::byte* there = mapped(remote, spot)) {
        copy_long(dest, there, bytes);
        rma::count_in_memory(remote.target(spot.area), AccessOperation::get, bytes);
        return poll_after_load();
    }
    ShmemAccess& operation = begin(context, AccessOperation::get);
    operation.result = {dest, static_cast<int64_t>(bytes), &byte_type()};
    operation.remote_block = {spot.offset, static_cast<int64_t>(bytes), &byte_type()};
    operation.awaited = !nbi;
    start(operation, remote, spot, bytes);
    if (!nbi) wait_until_done(operation);
}

void update(const ShmemContext& context, RemotePe& remote, const Spot& spot, const rma::Update& how, const void* operand,
            void* old, bool nbi) {
    const auto size = static_cast<size_t>(how.element->size);
    if (std::byte* there = mapped(remote, spot)) {
        rma::update(how, there, static_cast<const std::byte*>(operand), static_cast<std::byte*>(old), 1, nullptr);
        rma::count_in_memory(remote.target(spot.area), AccessOperation::update, size);
        if (operand) wake(remote);
        if (old) poll_after_load();
        return;
    }
    ShmemAccess& operation = begin(context, old ? AccessOperation::fetch_update : AccessOperation::update);
    operation.update = how;
    if (operand) std::memcpy(operation.value, operand, size);
    operation.origin = {operation.value, operand ? 1 : 0, how.element};
    operation.result = {old, old ? 1 : 0, how.element};
    operation.remote_block = {spot.offset, 1, how.element};
    operation.awaited = old && !nbi;
    start(operation, remote, spot, size);
    if (old && !nbi) wait_until_done(operation);
}

/// Returns the number of bytes that a strided access spans on one side, from the first block to the end of the last.
uint64_t reach_of(const starling_shmem_strides& strides, ptrdiff_t stride) {
    if (stride < static_cast<ptrdiff_t>(strides.block) && strides.blocks > 1)
        complain("the stride of %td bytes is less than the block size of %zu bytes", stride, strides.block);
    return (strides.blocks - 1) * static_cast<uint64_t>(stride) + strides.block;
}

void copy_blocks(std::byte* dest, const std::byte* source, const starling_shmem_strides& strides) {
    for (size_t i = 0; i < strides.blocks; ++i, dest += strides.dest, source += strides.source)
        std::memcpy(dest, source, strides.block);
}

/// Describes the remote side of a strided access.
void describe_blocks(ShmemAccess& operation, const Spot& spot, const starling_shmem_strides& strides, ptrdiff_t stride) {
    datatype::Datatype* made = nullptr;
    const int error = datatype::make(MPI_COMBINER_HVECTOR, true,
                                     {static_cast<int64_t>(strides.blocks), static_cast<int64_t>(strides.block), stride},
                                     {&datatype::predefined(MPI_BYTE)}, &made);
    if (error) complain_of_failure();
    operation.there_type = datatype::TypeRef(made);
    operation.remote_block = {spot.offset, 1, made};
}

bool is_fenced(RemotePe& remote) {
    // Packets to a PE on another host arrive in the order in which the accesses started. Accesses by RDMA and those of a neighbor's
    // variables may overtake each other, because they take different paths.
    const bool in_order = !remote.targets[0].overtakes() && !remote.targets[1].overtakes();
    if (!remote.is_local && in_order) return !remote.targets[0].waiting.front() && !remote.targets[1].waiting.front();
    return !remote.busy();
}

/// Wait site for all accesses in progress.
constexpr progress::WaitSite kForAll{nullptr, progress::Expected::soon, [](const void*, progress::WaitReporter& teller) {
                                         for (const RemotePe* remote : world().reached)
                                             for (const rma::Target& target : remote->targets)
                                                 if (target.open > 0) rma::report_access(target, teller);
                                     }};

}  // namespace

void quiet(const ShmemContext& context) {
    if (context.open->load(std::memory_order_relaxed) != 0)
        progress::wait_until([&] { return context.open->load(std::memory_order_relaxed) == 0; }, kForAll);
    wake_stored();
}

void quiet_all() {
    for (RemotePe* remote : world().reached)
        if (remote->busy()) progress::wait_until([&] { return !remote->busy(); }, kForAll);
    wake_stored();
}

void fence() {
    for (RemotePe* remote : world().reached)
        if (!is_fenced(*remote)) progress::wait_until([&] { return is_fenced(*remote); }, kForAll);
    wake_stored();
}

void update(RemotePe& remote, const Spot& spot, Element element, Operator op, const void* operand, void* old) {
    update(default_context(), remote, spot, {&type_of(element), &op_of(op)}, operand, old, false);
}

void compare_swap(const ShmemContext& context, RemotePe& remote, const Spot& spot, Element kind, const void* cond,
                  const void* value, void* old, bool nbi) {
    const datatype::Datatype& element = type_of(kind);
    const auto size = static_cast<size_t>(element.size);
    if (std::byte* there = mapped(remote, spot)) {
        rma::compare_and_swap(element, there, static_cast<const std::byte*>(value), static_cast<const std::byte*>(cond),
                              static_cast<std::byte*>(old), nullptr);
        rma::count_in_memory(remote.target(spot.area), AccessOperation::compare_swap, size);
        wake(remote);
        return poll_after_load();
    }
    ShmemAccess& operation = begin(context, AccessOperation::compare_swap);
    operation.update.element = &element;
    std::memcpy(operation.swap, value, size);
    std::memcpy(operation.swap + size, cond, size);
    operation.result = {old, 1, &element};
    operation.remote_block = {spot.offset, 1, &element};
    operation.awaited = !nbi;
    start(operation, remote, spot, size);
    if (!nbi) wait_until_done(operation);
}

extern "C" {

void starling_shmem_put(const char* name, void* context, void* dest, const void* source, size_t bytes, int pe, bool nbi) {
    const ShmemCall call(name);
    const ShmemContext& its = context_of(context);
    RemotePe& remote = remote_of(its, pe);
    if (bytes > 0) put(its, remote, located("dest", dest, bytes), source, bytes, nbi);
}

void starling_shmem_get(const char* name, void* context, void* dest, const void* source, size_t bytes, int pe, bool nbi) {
    const ShmemCall call(name);
    const ShmemContext& its = context_of(context);
    RemotePe& remote = remote_of(its, pe);
    if (bytes > 0) get(its, remote, located("source", source, bytes), dest, bytes, nbi);
}

void starling_shmem_put_strided(const char* name, void* context, void* dest, const void* source,
                                const starling_shmem_strides* strides, int pe) {
    const ShmemCall call(name);
    const ShmemContext& its = context_of(context);
    RemotePe& remote = remote_of(its, pe);
    if (strides->block == 0 || strides->blocks == 0) return;
    const Spot spot = located("dest", dest, reach_of(*strides, strides->dest));
    reach_of(*strides, strides->source);
    if (std::byte* there = mapped(remote, spot)) {
        copy_blocks(there, static_cast<const std::byte*>(source), *strides);
        rma::count_in_memory(remote.target(spot.area), AccessOperation::put, strides->block * strides->blocks);
        return note_store(remote);
    }
    ShmemAccess& operation = begin(its, AccessOperation::put);
    operation.packed.resize(strides->block * strides->blocks);
    copy_blocks(operation.packed.data(), static_cast<const std::byte*>(source),
                {static_cast<ptrdiff_t>(strides->block), strides->source, strides->block, strides->blocks});
    operation.origin = {operation.packed.data(), static_cast<int64_t>(operation.packed.size()), &byte_type()};
    describe_blocks(operation, spot, *strides, strides->dest);
    start(operation, remote, spot, 0);
}

void starling_shmem_get_strided(const char* name, void* context, void* dest, const void* source,
                                const starling_shmem_strides* strides, int pe) {
    const ShmemCall call(name);
    const ShmemContext& its = context_of(context);
    RemotePe& remote = remote_of(its, pe);
    if (strides->block == 0 || strides->blocks == 0) return;
    const Spot spot = located("source", source, reach_of(*strides, strides->source));
    reach_of(*strides, strides->dest);
    if (const std::byte* there = mapped(remote, spot)) {
        copy_blocks(static_cast<std::byte*>(dest), there, *strides);
        rma::count_in_memory(remote.target(spot.area), AccessOperation::get, strides->block * strides->blocks);
        return poll_after_load();
    }
    std::vector<std::byte> packed(strides->block * strides->blocks);
    ShmemAccess& operation = begin(its, AccessOperation::get);
    operation.result = {packed.data(), static_cast<int64_t>(packed.size()), &byte_type()};
    describe_blocks(operation, spot, *strides, strides->source);
    operation.awaited = true;
    start(operation, remote, spot, 0);
    wait_until_done(operation);
    copy_blocks(static_cast<std::byte*>(dest), packed.data(),
                {strides->dest, static_cast<ptrdiff_t>(strides->block), strides->block, strides->blocks});
}

void starling_shmem_update(const char* name, void* context, Element element, Operator op, void* dest, const void* operand,
                           void* old, int pe, bool nbi) {
    const ShmemCall call(name);
    const ShmemContext& its = context_of(context);
    RemotePe& remote = remote_of(its, pe);
    const rma::Update how{&type_of(element), &op_of(op)};
    update(its, remote, located("dest", dest, static_cast<uint64_t>(how.element->size)), how, operand, old, nbi);
}

void starling_shmem_compare_swap(const char* name, void* context, Element element, void* dest, const void* cond,
                                 const void* value, void* old, int pe, bool nbi) {
    const ShmemCall call(name);
    const ShmemContext& its = context_of(context);
    RemotePe& remote = remote_of(its, pe);
    const auto size = static_cast<uint64_t>(type_of(element).size);
    compare_swap(its, remote, located("dest", dest, size), element, cond, value, old, nbi);
}

void starling_shmem_put_signal(const char* name, void* context, void* dest, const void* source, size_t bytes, uint64_t* signal,
                               uint64_t value, Operator op, int pe, bool nbi) {
    const ShmemCall call(name);
    const ShmemContext& its = context_of(context);
    RemotePe& remote = remote_of(its, pe);
    const Spot flag = located("sig_addr", signal, sizeof value);
    if (bytes > 0) {
        put(its, remote, located("dest", dest, bytes), source, bytes, nbi);
        if (!is_fenced(remote)) progress::wait_until([&] { return is_fenced(remote); }, kForAll);
    }
    update(its, remote, flag, {&type_of(Element::uint64), &op_of(op)}, &value, nullptr, nbi);
}

void starling_shmem_quiet(const char* name, void* context) {
    const ShmemCall call(name);
    if (context) quiet(context_of(context));  // An invalid context has no accesses in progress, so nothing is to be waited for.
}

void starling_shmem_fence(const char* name, void* context) {
    const ShmemCall call(name);
    if (!context) return;
    context_of(context);
    fence();
}

void starling_shmem_wake(int pe) {
    const Lock lock;
    wake(remote_pe(pe));
}

void starling_shmem_stored(int pe) {
    const Lock lock;
    starling_shmem_near.stored.store(pe, std::memory_order_relaxed);
    note_store(remote_pe(pe));
}
}  // extern "C"

}  // namespace starling::shmem
