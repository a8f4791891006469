// Data for tests of collectives: datatypes with and without gaps, operations, and buffers that are checked byte by byte.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "base/counts.h"
#include "collective/core/blocks.h"
#include "collective/core/buffers.h"
#include "datatype/construct.h"
#include "datatype/datatype.h"
#include "datatype/op.h"

namespace data {

using starling::Counts;
using starling::collective::Blocks;
using starling::datatype::Datatype;
using starling::datatype::Op;

using Values = std::vector<uint32_t>;

/// A datatype and the offsets of its 32-bit numbers.
struct Shape {
    const Datatype* type;
    std::vector<int64_t> offsets;
    int64_t extent;
    int64_t numbers() const { return static_cast<int64_t>(offsets.size()); }
};

/// Returns a datatype with a 32-bit number at each of these byte offsets.
inline const Datatype* make_type(const std::vector<int64_t>& offsets, int64_t low, int64_t extent) {
    std::vector<int64_t> arguments{static_cast<int64_t>(offsets.size())};
    arguments.insert(arguments.end(), offsets.size(), 1);
    arguments.insert(arguments.end(), offsets.begin(), offsets.end());
    Datatype *numbers = nullptr, *resized = nullptr;
    if (starling::datatype::make(MPI_COMBINER_HINDEXED, true, arguments, {&starling::datatype::predefined(MPI_UINT32_T)},
                                 &numbers) ||
        starling::datatype::make(MPI_COMBINER_RESIZED, true, {low, extent}, {numbers}, &resized))
        std::abort();
    starling::datatype::commit(*resized);
    return resized;
}

inline Shape make_shape(std::vector<int64_t> offsets, int64_t low, int64_t extent) {
    const Datatype* type = make_type(offsets, low, extent);
    return {type, std::move(offsets), extent};
}

/// MPI_UINT32_T.
inline const Shape& single() {
    static const Shape shape{&starling::datatype::predefined(MPI_UINT32_T), {0}, 4};
    return shape;
}

/// Datatypes of two numbers: packed, with gaps, with data before the buffer's address, and in reverse order.
inline const std::vector<const Shape*>& pairs() {
    static const Shape packed = make_shape({0, 4}, 0, 8);
    static const Shape gaps = make_shape({4, 12}, 0, 20);
    static const Shape before = make_shape({-8, 4}, -8, 16);
    static const Shape reversed = make_shape({8, 0}, 0, 12);
    static const std::vector<const Shape*> all{&packed, &gaps, &before, &reversed};
    return all;
}

/// Shape of the operands that user-defined operations get.
inline const Shape* operand_shape = nullptr;

inline void compose_pair(const uint32_t left[2], uint32_t right[2]) {
    right[1] = left[0] * right[1] + left[1];
    right[0] = left[0] * right[0];
}
inline void add_pair(const uint32_t left[2], uint32_t right[2]) {
    right[0] += left[0];
    right[1] += left[1];
}

template <void (*kPair)(const uint32_t*, uint32_t*)>
void apply_to_pairs(void* in, void* inout, int* count, MPI_Datatype*) {
    for (int i = 0; i < *count; ++i) {
        uint32_t left[2], right[2];
        for (size_t k = 0; k < 2; ++k) {
            const int64_t at = i * operand_shape->extent + operand_shape->offsets[k];
            std::memcpy(&left[k], static_cast<char*>(in) + at, 4);
            std::memcpy(&right[k], static_cast<char*>(inout) + at, 4);
        }
        kPair(left, right);
        for (size_t k = 0; k < 2; ++k) {
            const int64_t at = i * operand_shape->extent + operand_shape->offsets[k];
            std::memcpy(static_cast<char*>(inout) + at, &right[k], 4);
        }
    }
}

/// A reduction operation and its counterpart on plain values.
struct Operation {
    const Op* op;
    void (*on_values)(const uint32_t*, uint32_t*);  ///< the operation on plain values; null: the sum of single numbers
    Values combine(const Values& left, Values right) const {
        for (size_t i = 0; i < right.size(); i += on_values ? 2 : 1) {
            if (on_values)
                on_values(&left[i], &right[i]);
            else
                right[i] += left[i];
        }
        return right;
    }
};

/// Returns MPI_SUM, for the datatypes of single().
inline const Operation& sum() {
    static const Operation operation{starling::datatype::from_handle(MPI_SUM), nullptr};
    return operation;
}
/// Composes the maps x → ax + b, for pairs(): associative but not commutative.
inline const Operation& compose() {
    static const Operation operation{starling::datatype::make_op(apply_to_pairs<compose_pair>, nullptr, false), compose_pair};
    return operation;
}
/// Returns two independent sums, for the datatypes of pairs(): a user-defined and commutative operation.
inline const Operation& add() {
    static const Operation operation{starling::datatype::make_op(apply_to_pairs<add_pair>, nullptr, true), add_pair};
    return operation;
}

/// Bytes with margins, filled with a pattern; compared and copied as a whole, so that stray writes are found.
class Memory {
  public:
    explicit Memory(int64_t size = 0) : bytes_(static_cast<size_t>(size) + 2 * kMargin, 0xA5) {}
    unsigned char* at(int64_t offset) { return bytes_.data() + kMargin + offset; }
    void put(const Shape& shape, int64_t offset, int64_t count, const Values& values) {
        for (int64_t i = 0; i < count * shape.numbers(); ++i)
            std::memcpy(at(offset) + place(shape, i), &values.at(static_cast<size_t>(i)), 4);
    }
    bool operator==(const Memory&) const = default;

  private:
    static constexpr size_t kMargin = 64;
    static int64_t place(const Shape& shape, int64_t number) {
        return number / shape.numbers() * shape.extent + shape.offsets[static_cast<size_t>(number % shape.numbers())];
    }
    std::vector<unsigned char> bytes_;
};

/// A buffer of `count` elements of one datatype.
struct Buffer {
    const Shape* shape;
    int64_t count;
    Memory memory;
    Buffer(const Shape& s, int64_t c) : shape(&s), count(c), memory(c * s.extent + 64) {}
    void* address() { return memory.at(32); }
    void put(const Values& values, int64_t first = 0) {
        memory.put(*shape, 32 + first * shape->extent, static_cast<int64_t>(values.size()) / shape->numbers(), values);
    }
};

enum class Form { uniform, counted, typed };

/// A buffer with one block per rank, in one of the forms above; `uniform` requires equal counts and shapes.
class BlockBuffer {
  public:
    BlockBuffer(std::mt19937& random, Form form, std::vector<int64_t> counts, std::vector<const Shape*> shapes)
        : form_(form), counts_(std::move(counts)), shapes_(std::move(shapes)) {
        // Place the blocks in random order, with gaps. Where displacements count elements, place them at multiples of an element.
        const size_t n = counts_.size();
        elements_.resize(n);
        bytes_.resize(n);
        std::vector<size_t> order(n);
        for (size_t i = 0; i < n; ++i) order[i] = i;
        if (form_ != Form::uniform) std::shuffle(order.begin(), order.end(), random);
        int64_t end = 0;
        for (const size_t i : order) {
            const int64_t extent = shapes_[i]->extent;
            if (form_ == Form::counted) end = (end / extent + random() % 3) * extent + extent;
            if (form_ == Form::typed) end += 16 + static_cast<int64_t>(random() % 3) * 4;
            bytes_[i] = end;
            elements_[i] = end / extent;
            end += counts_[i] * extent;
            types_.push_back(nullptr);
        }
        for (size_t i = 0; i < n; ++i) types_[i] = shapes_[i]->type;
        narrow_.assign(counts_.begin(), counts_.end());
        memory = Memory(end + 64);
    }
    void* address() { return memory.at(32); }
    Blocks blocks() {
        if (form_ == Form::uniform) return Blocks(address(), counts_[0], *types_[0]);
        if (form_ == Form::counted) return Blocks(address(), Counts(narrow_.data()), Counts(elements_.data()), *types_[0]);
        return Blocks(address(), Counts(counts_.data()), Counts(bytes_.data()), types_.data());
    }
    void put(int rank, const Values& values) {
        const auto i = static_cast<size_t>(rank);
        memory.put(*shapes_[i], 32 + bytes_[i], counts_[i], values);
    }
    Memory memory;

  private:
    Form form_;
    std::vector<int64_t> counts_, elements_, bytes_;
    std::vector<int> narrow_;
    std::vector<const Shape*> shapes_;
    std::vector<const Datatype*> types_;
};

inline Values random_values(std::mt19937& random, int64_t numbers) {
    Values values(static_cast<size_t>(numbers));
    for (auto& value : values) value = static_cast<uint32_t>(random());
    return values;
}

}  // namespace data
