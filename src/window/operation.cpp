#include "window/operation.h"

#include <cstring>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "progress/engine.h"
#include "window/epoch.h"
#include "window/mapped_access.h"
#include "window/revocation.h"
#include "window/target_failures.h"

namespace starling::window {

STARLING_STATE CachedUpdate last_found;

namespace {

using datatype::Datatype;
using AccessOperation = rma::AccessOperation;

STARLING_STATE NoDestroy<Pool<rma::Access>> access_pool_storage;
constinit auto& access_pool = access_pool_storage.value;

bool is_update(AccessOperation what) { return what == AccessOperation::update || what == AccessOperation::fetch_update; }

/// Returns the predefined datatype with the same elements, which most unnamed types have.
const Datatype* with_number(const Datatype& type) {
    if (type.predefined) return &type;
    for (const Datatype& other : datatype::predefined_types)
        if (other.magic == Datatype::kMagic && other.basic == type.basic && other.size == type.size &&
            other.extent == type.extent && other.value == type.value && other.index == type.index)
            return &other;
    return nullptr;
}

/// Determines the element and the operation of an update.
int find_update(const WindowOperation& asked, rma::Update& update) {
    const bool plain = asked.type->predefined && (!asked.origin.type || asked.origin.type == asked.type);
    const bool by_window = asked.op->operation == datatype::ReductionOperation::replace ||
                           asked.op->operation == datatype::ReductionOperation::no_op;
    const Datatype* element = datatype::element_of(*asked.type);
    if (!asked.op->predefined ||
        (datatype::packed_size(*asked.type, asked.count) > 0 && !datatype::op_valid_for_window(*asked.op, *asked.type)))
        return fail(MPI_ERR_OP,
                    "accumulate functions do not support this operation with this datatype: use a predefined operation that is "
                    "defined for it");
    const bool moves = asked.origin.bytes() > 0 && datatype::packed_size(*asked.type, asked.count) > 0;
    if (asked.origin.type && element && !by_window && moves) {
        const Datatype* here = datatype::element_of(*asked.origin.type);
        if (!here || here->basic != element->basic)
            return fail(MPI_ERR_TYPE, "the datatypes of origin and target have different basic types");
    }
    update.op = asked.op;
    update.element = element ? with_number(*element) : &datatype::predefined(MPI_BYTE);
    if (!update.element)
        return fail(MPI_ERR_UNSUPPORTED_OPERATION, "updates of this pair type (a value and an index) are not supported");
    if (plain && datatype::packed_size(*asked.type, asked.count) > 0)
        last_found = {datatype::to_handle(asked.type), datatype::to_handle(asked.op), update, rma::way_of(update)};
    return MPI_SUCCESS;
}

/// Computes the position in the target's region, and checks it as far as the region is known here.
int locate(const Window& window, const WindowTarget& remote, const WindowOperation& asked, rma::RemoteBlock& there) {
    const uint64_t data = datatype::packed_size(*asked.type, asked.count);
    int64_t offset = 0, first = 0;  // offset of the displacement in the region; offset of the first accessed byte
    bool outside = __builtin_mul_overflow(int64_t{asked.disp}, remote.disp_unit, &offset) ||
                   __builtin_add_overflow(offset, datatype::span_offset(*asked.type, asked.count), &first);
    if (data > 0 && window.flavor != MPI_WIN_FLAVOR_DYNAMIC) {
        const uint64_t span = datatype::span(*asked.type, asked.count);
        outside = outside || first < 0 || span > remote.bytes || static_cast<uint64_t>(first) > remote.bytes - span;
    }
    if (outside && data > 0)
        return fail(asked.disp < 0 ? MPI_ERR_DISP : MPI_ERR_RMA_RANGE,
                    "the access at displacement %lld is not within the %llu-byte window of rank %d",
                    static_cast<long long>(asked.disp), static_cast<unsigned long long>(remote.bytes), remote.rank);
    there = {static_cast<uint64_t>(offset), asked.count, asked.type};
    return MPI_SUCCESS;
}

/// Checks an access to this process's own memory in a dynamic window, because no other code checks that it is attached.
int check_attached(const Window& window, const WindowTarget& remote, const rma::RemoteBlock& there) {
    if (window.flavor != MPI_WIN_FLAVOR_DYNAMIC || !remote.target.mapped || there.bytes() == 0) return MPI_SUCCESS;
    const rma::Region* region = rma::find_region(window.key.id, window.key.secret);
    const uint64_t first = there.offset + static_cast<uint64_t>(datatype::span_offset(*there.type, there.count));
    if (region && region->at(first, datatype::span(*there.type, there.count))) return MPI_SUCCESS;
    return fail(MPI_ERR_RMA_RANGE, "the memory at %p is not attached to the window", reinterpret_cast<void*>(first));
}

int check_lengths(const WindowOperation& asked) {
    const uint64_t there = datatype::packed_size(*asked.type, asked.count);
    const bool takes = asked.what == AccessOperation::get || asked.what == AccessOperation::fetch_update;
    if (asked.origin.type && asked.origin.bytes() > there)
        return fail(MPI_ERR_TRUNCATE, "the origin has %llu bytes, but the target's datatype and count hold only %llu",
                    static_cast<unsigned long long>(asked.origin.bytes()), static_cast<unsigned long long>(there));
    if (takes && asked.result.bytes() < there)
        return fail(MPI_ERR_TRUNCATE, "the target's datatype and count have %llu bytes, but the result buffer holds only %llu",
                    static_cast<unsigned long long>(there), static_cast<unsigned long long>(asked.result.bytes()));
    return MPI_SUCCESS;
}

/// Checks that the epoch allows the access, and that it stays within the region.
int check(Window& window, const WindowOperation& asked, WindowTarget& target, rma::RemoteBlock& there) {
    if (!target.target.peer) return MPI_ERR_PROC_ABORTED;
    if (const int error = begin_access(window, target)) return error;
    if (const int error = locate(window, target, asked, there)) return error;
    if (const int error = check_attached(window, target, there)) return error;
    return check_lengths(asked);
}

int check_swap(const WindowOperation& asked) {
    if (can_be_compared(*asked.type)) return MPI_SUCCESS;
    return fail(MPI_ERR_TYPE, "the datatype is not valid for compare-and-swap: use a predefined integer, logical or byte type");
}

/// Fills all fields of the access but its remote block.
int describe(const WindowOperation& asked, rma::Access& access) {
    access.operation = asked.what;
    access.origin = asked.origin;
    access.result = asked.result;
    if (is_update(asked.what)) return find_update(asked, access.update);
    if (asked.what != AccessOperation::compare_swap) return MPI_SUCCESS;
    if (const int error = check_swap(asked)) return error;
    access.update.element = with_number(*asked.type);
    const auto size = static_cast<size_t>(asked.type->size);
    std::memcpy(access.swap, asked.origin.buffer, size);
    std::memcpy(access.swap + size, asked.compare, size);
    return MPI_SUCCESS;
}

void retain_types(const rma::Access& access) {
    for (const Datatype* type : {access.origin.type, access.result.type, access.remote_block.type})
        if (type) datatype::retain(*type);
}

void release_access(rma::Access& access) {
    release_types(access);
    access_pool.destroy(&access);
}

}  // namespace

void release_types(const rma::Access& access) {
    for (const Datatype* type : {access.origin.type, access.result.type, access.remote_block.type})
        if (type) datatype::release(*type);
}

namespace {

/// Fast path: both sides are contiguous and the epoch allows the access. Returns false otherwise; check() then finds the reason.
bool find_blocks(Window& window, const WindowTarget& to, const WindowOperation& asked, const rma::LocalBuffer& local,
                 uint64_t& bytes, uint64_t& offset) {
    const Datatype &there = *asked.type, &here = *local.type;
    if (to.held == LockHeld::no && window.epoch != Epoch::fence) return false;
    if (!there.contiguous || !here.contiguous || there.true_lb != 0 || here.true_lb != 0) return false;
    bytes = static_cast<uint64_t>(there.size * asked.count);
    int64_t first;
    if (__builtin_mul_overflow(int64_t{asked.disp}, to.disp_unit, &first) || first < 0) return false;
    offset = static_cast<uint64_t>(first);
    const bool fits = bytes <= to.bytes && offset <= to.bytes - bytes && bytes > 0;
    if (!fits || bytes != static_cast<uint64_t>(here.size * local.count)) return false;
    if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC || !to.target.peer) return false;
    if (window.epoch == Epoch::fence) window.fence_used = true;
    return true;
}

/// Carries out an access by loads and stores in the target's mapped memory. The access is complete on return.
int run_in_mapping(const rma::Target& target, const WindowOperation& asked, const rma::RemoteBlock& there) {
    if (asked.what == AccessOperation::put) {
        rma::put_in_mapping(target, asked.origin, there);
    } else if (asked.what == AccessOperation::get) {
        rma::get_from_mapping(target, there, asked.result);
    } else if (asked.what == AccessOperation::compare_swap) {
        if (const int error = check_swap(asked)) return error;
        rma::compare_and_swap_in_mapping(target, *asked.type, there.offset, static_cast<const std::byte*>(asked.origin.buffer),
                                         static_cast<const std::byte*>(asked.compare),
                                         static_cast<std::byte*>(asked.result.buffer));
    } else {
        rma::Update how;
        if (const int error = find_update(asked, how)) return error;
        rma::update_in_mapping(target, how, asked.origin, there, asked.result);
    }
    return MPI_SUCCESS;
}

}  // namespace

int run(Window& window, const WindowOperation& asked) {
    if (is_revoked(window)) [[unlikely]]
        return why_revoked();
    WindowTarget& to = get_or_create_target(window, asked.rank);
    if (has_failed_mapped(to)) [[unlikely]]
        return why_target_failed(to);
    if (asked.what <= AccessOperation::get) {
        const rma::LocalBuffer& local = asked.what == AccessOperation::put ? asked.origin : asked.result;
        uint64_t bytes, offset;
        if (find_blocks(window, to, asked, local, bytes, offset) &&
            rma::move_block(to.target, asked.what, local.buffer, offset, bytes))
            return MPI_SUCCESS;
    }
    rma::RemoteBlock there;
    if (const int error = check(window, asked, to, there)) return error;
    if (to.target.mapped) [[likely]]
        return run_in_mapping(to.target, asked, there);
    rma::Access* access = access_pool.create();
    access->remote_block = there;
    if (const int error = describe(asked, *access)) {
        access_pool.destroy(access);
        return error;
    }
    access->over = release_access;
    retain_types(*access);
    rma::start(*access, to.target);
    return MPI_SUCCESS;
}

int start(Window& window, const WindowOperation& asked, rma::Access& access) {
    if (is_revoked(window)) [[unlikely]]
        return why_revoked();
    WindowTarget& to = get_or_create_target(window, asked.rank);
    int error = has_failed_mapped(to) ? why_target_failed(to) : check(window, asked, to, access.remote_block);
    if (!error) error = describe(asked, access);
    if (error) {
        access.origin.type = access.result.type = access.remote_block.type = nullptr;
        return error;
    }
    retain_types(access);
    rma::start(access, to.target);
    // Polls now and then, because a loop of MPI_Rget and MPI_Wait does not poll anywhere else.
    if (access.done && ++idle_flushes % kFlushesPerLook == 0) progress::test();
    return MPI_SUCCESS;
}

}  // namespace starling::window
