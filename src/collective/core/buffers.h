// Memory for algorithms: temporaries, packed copies, accumulators of reductions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "collective/core/blocks.h"
#include "datatype/datatype.h"
#include "datatype/op.h"

namespace starling::collective {

using datatype::Op;

inline const Datatype& byte_type() { return datatype::predefined(MPI_BYTE); }

/// Memory for `count` elements of a type, with its true extent; data() is used like an MPI buffer. Gaps are not initialized. Throws
/// std::bad_alloc.
class Temporary {
  public:
    Temporary() = default;
    Temporary(const Datatype& type, int64_t count)
        : memory_(new std::byte[datatype::span(type, count)]), data_(memory_.get() - datatype::span_offset(type, count)) {}
    /// Allocates `bytes` bytes.
    explicit Temporary(uint64_t bytes) : memory_(new std::byte[bytes]), data_(memory_.get()) {}

    std::byte* data() const { return data_; }

  private:
    std::unique_ptr<std::byte[]> memory_;
    std::byte* data_ = nullptr;
};

/// The packed form of a buffer as plain bytes: the buffer itself if it is one block, else a copy.
class PackedBuffer {
  public:
    PackedBuffer(void* buffer, int64_t count, const Datatype& type)
        : buffer_(buffer), count_(count), type_(type), bytes_(datatype::packed_size(type, count)) {
        if (datatype::is_block(type, count)) {
            data_ = static_cast<std::byte*>(datatype::block_address(type, buffer));
        } else {
            copy_ = Temporary(bytes_);
            data_ = copy_.data();
        }
    }
    std::byte* data() const { return data_; }
    uint64_t bytes() const { return bytes_; }
    /// Packs the buffer into the copy, if there is one.
    void load() {
        if (copy_.data()) datatype::pack(type_, count_, buffer_, 0, data_, bytes_);
    }
    /// Unpacks the copy, if there is one, into the buffer.
    void store() {
        if (copy_.data()) datatype::unpack(type_, count_, buffer_, 0, data_, bytes_);
    }

  private:
    void* buffer_;
    int64_t count_;
    const Datatype& type_;
    uint64_t bytes_;
    Temporary copy_;
    std::byte* data_;
};

/// The intermediate value of a reduction, and a second buffer for arriving operands. The two swap roles where the operation's order demands
/// it, so read value() again after every step.
class Accumulator {
  public:
    Accumulator(void* value, void* operand, int64_t count, const Datatype& type, const Op& op)
        : value_(value), operand_(operand), count_(count), type_(type), op_(op) {}

    void* value() const { return value_; }
    void* operand() const { return operand_; }
    /// Computes value = operand ∘ value: the operand comes from lower ranks.
    int add_left() { return datatype::apply(op_, operand_, value_, count_, type_); }
    /// Computes value = value ∘ operand: the operand comes from higher ranks.
    int add_right() {
        if (op_.commutative) return add_left();
        std::swap(value_, operand_);
        return datatype::apply(op_, operand_, value_, count_, type_);
    }
    /// Copies the value to `target` unless it is there already.
    void store(void* target) const {
        if (value_ != target) datatype::copy(type_, count_, value_, target);
    }

  private:
    void* value_;
    void* operand_;
    int64_t count_;
    const Datatype& type_;
    const Op& op_;
};

/// Returns the address of a rank's input: MPI_IN_PLACE means the receive buffer.
inline const void* input_of(const void* send, const void* receive) { return send == MPI_IN_PLACE ? receive : send; }

/// The range [offset, offset + count) of a vector's elements. part_of() returns piece `index` when `total` elements are divided into
/// `pieces` nearly equal pieces.
struct ElementRange {
    int64_t offset, count;
};
inline ElementRange part_of(int64_t total, int pieces, int index) {
    const int64_t each = total / pieces, rest = total % pieces;
    return {index * each + (index < rest ? index : rest), each + (index < rest ? 1 : 0)};
}
/// Returns the largest power of two that is not above n.
inline int floor_power_of_two(int n) {
    int power = 1;
    while (power <= n / 2) power *= 2;
    return power;
}

}  // namespace starling::collective
