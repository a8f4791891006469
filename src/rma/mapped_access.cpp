// Accesses in a mapping of the region, by copies and atomic instructions, without the owner.
#include <limits>
#include <vector>

#include "rma/flatten.h"

namespace starling::rma {

namespace {

std::byte* in_mapping(const Target& target, uint64_t offset) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(target.mapping) + offset);
}

/// A buffer of this process as packed bytes: the buffer itself if it is contiguous, otherwise a copy.
class Packed {
  public:
    explicit Packed(const LocalBuffer& local) : local_(local) {
        if (!local.type) return;
        if (datatype::is_block(*local.type, local.count)) {
            data_ = static_cast<std::byte*>(datatype::block_address(*local.type, local.buffer));
        } else {
            copy_.resize(local.bytes());
            data_ = copy_.data();
        }
    }
    void load() {
        if (!copy_.empty()) datatype::pack(*local_.type, local_.count, local_.buffer, 0, data_, copy_.size());
    }
    void store() {
        if (!copy_.empty()) datatype::unpack(*local_.type, local_.count, local_.buffer, 0, data_, copy_.size());
    }
    std::byte* at(uint64_t position) const { return data_ ? data_ + position : nullptr; }

  private:
    const LocalBuffer& local_;
    std::vector<std::byte> copy_;
    std::byte* data_ = nullptr;
};

/// Updates the target's memory run by run; the buffers may have gaps.
void update_runs(const Target& target, const Update& how, const LocalBuffer& origin, const RemoteBlock& there,
                 const LocalBuffer& result) {
    Packed operand(origin), old(result);
    operand.load();
    const uint64_t bytes = origin.type ? origin.bytes() : there.bytes();
    const auto size = static_cast<uint64_t>(how.element->size);
    BlockRun run{};
    for (uint64_t done = 0; done < bytes; done += run.bytes) {
        if (!next_run(there, how.element, done, std::numeric_limits<int64_t>::max(), run)) break;
        update(how, in_mapping(target, run.offset), operand.at(done), old.at(done), static_cast<int64_t>(run.bytes / size),
               target.exclusion);
    }
    old.store();
}

/// Returns whether both sides are contiguous, which is the most frequent case.
bool both_blocks(const LocalBuffer& local, const RemoteBlock& there) {
    return local.type->contiguous && there.type->contiguous;
}

void copy_block(std::byte* to, const void* from, uint64_t bytes) {
    if (bytes <= kFewBytes) return copy_few(to, from, bytes);
    copy_long(to, from, bytes);
}

}  // namespace

void put_in_mapping(const Target& target, const LocalBuffer& origin, const RemoteBlock& there) {
    count_in_memory(target, AccessOperation::put, there.bytes());
    note_store();
    std::byte* memory = in_mapping(target, there.offset);
    if (both_blocks(origin, there))
        return copy_block(static_cast<std::byte*>(datatype::block_address(*there.type, memory)),
                          datatype::block_address(*origin.type, origin.buffer), origin.bytes());
    datatype::copy(*origin.type, origin.count, origin.buffer, *there.type, there.count, memory);
}

void get_from_mapping(const Target& target, const RemoteBlock& there, const LocalBuffer& result) {
    count_in_memory(target, AccessOperation::get, there.bytes());
    before_load();
    std::byte* memory = in_mapping(target, there.offset);
    if (both_blocks(result, there))
        return copy_block(static_cast<std::byte*>(datatype::block_address(*result.type, result.buffer)),
                          datatype::block_address(*there.type, memory), there.bytes());
    datatype::copy(*there.type, there.count, memory, *result.type, result.count, result.buffer);
}

void update_in_mapping(const Target& target, const Update& how, const LocalBuffer& origin, const RemoteBlock& there,
                       const LocalBuffer& result) {
    count_in_memory(target, AccessOperation::update, there.bytes());
    before_update(how.op->operation == datatype::ReductionOperation::no_op);
    const LocalBuffer operand = how.op->operation == datatype::ReductionOperation::no_op ? LocalBuffer{} : origin;
    const bool plain = there.type == how.element && (!operand.type || operand.type == how.element) &&
                       (!result.type || result.type == how.element) && how.element->contiguous;
    if (!plain) return update_runs(target, how, operand, there, result);
    update(how, in_mapping(target, there.offset), static_cast<std::byte*>(operand.buffer),
           static_cast<std::byte*>(result.buffer), operand.type ? operand.count : there.count, target.exclusion);
}

void compare_and_swap_in_mapping(const Target& target, const Datatype& element, uint64_t offset, const std::byte* operand,
                                 const std::byte* compare, std::byte* old) {
    count_in_memory(target, AccessOperation::compare_swap, static_cast<uint64_t>(element.size));
    before_update(false);
    compare_and_swap(element, in_mapping(target, offset), operand, compare, old, target.exclusion);
}

void do_in_mapping(const Access& access, const Target& target) {
    switch (access.operation) {
        case AccessOperation::put:
            return put_in_mapping(target, access.origin, access.remote_block);
        case AccessOperation::get:
            return get_from_mapping(target, access.remote_block, access.result);
        case AccessOperation::compare_swap:
            return compare_and_swap_in_mapping(target, *access.update.element, access.remote_block.offset, access.swap,
                                               access.swap + access.update.element->size,
                                               static_cast<std::byte*>(access.result.buffer));
        default:
            return update_in_mapping(target, access.update, access.origin, access.remote_block, access.result);
    }
}

}  // namespace starling::rma
