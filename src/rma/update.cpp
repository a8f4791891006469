#include "rma/update.h"

#include <algorithm>
#include <cstring>

namespace starling::rma {

namespace {

using datatype::Basic;
using datatype::Operation;

/// The largest predefined datatype: a complex number of two long doubles.
constexpr size_t kLargestElement = 32;

/// What the processor does by itself.
enum class Known : uint8_t { none, load, exchange, add };

Known known(const Update& u) {
    const Basic basic = u.element->basic;
    switch (u.op->operation) {
        case Operation::no_op:
            return Known::load;
        case Operation::replace:
            return Known::exchange;
        case Operation::sum:
            return basic >= Basic::int8 && basic <= Basic::uint64 ? Known::add : Known::none;
        default:
            return Known::none;
    }
}

template <class Word>
void update_words(const Update& u, Known way, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count) {
    for (int64_t i = 0; i < count; ++i, memory += sizeof(Word)) {
        auto* word = reinterpret_cast<Word*>(memory);
        Word value = 0, before;
        if (operand) std::memcpy(&value, operand + i * static_cast<int64_t>(sizeof(Word)), sizeof value);
        if (way == Known::load) {
            before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        } else if (way == Known::exchange) {
            before = __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
        } else if (way == Known::add) {
            before = __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
        } else {
            before = __atomic_load_n(word, __ATOMIC_RELAXED);
            for (Word after;;) {
                datatype::apply_to(*u.op, &value, &before, &after, 1, *u.element);
                if (__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) break;
            }
        }
        if (old) std::memcpy(old + i * static_cast<int64_t>(sizeof(Word)), &before, sizeof before);
    }
}

/// Whether a number of this kind is a word of the processor's.
bool is_word(const Datatype& element) {
    return element.contiguous && element.size <= 8 && (element.size & (element.size - 1)) == 0;
}

bool is_aligned(const std::byte* memory, int64_t size) {
    return reinterpret_cast<uintptr_t>(memory) % static_cast<uint64_t>(size) == 0;
}

/// For a scope in which nobody else changes elements; without an exclusion there is nobody else.
class Alone {
  public:
    explicit Alone(const Exclusion* exclusion) : exclusion_(exclusion) {
        if (exclusion_) exclusion_->begin_all();
    }
    ~Alone() {
        if (exclusion_) exclusion_->end_all();
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

  private:
    const Exclusion* exclusion_;
};

/// For a scope around one instruction of the processor's.
class Marked {
  public:
    explicit Marked(const Exclusion* exclusion) : exclusion_(exclusion), marked_(exclusion && exclusion->begin_one()) {
        if (exclusion_ && !marked_) exclusion_->begin_all();
    }
    ~Marked() {
        if (marked_)
            exclusion_->end_one();
        else if (exclusion_)
            exclusion_->end_all();
    }
    Marked(const Marked&) = delete;
    Marked& operator=(const Marked&) = delete;

  private:
    const Exclusion* exclusion_;
    const bool marked_;
};

/// Elements that lie as they have to, many at a time, by plain instructions: nobody else changes any.
void update_in_bulk(const Update& u, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count) {
    const auto bytes = static_cast<uint64_t>(count * u.element->size);
    if (old) std::memcpy(old, memory, bytes);
    if (u.op->operation == Operation::no_op) return;
    if (u.op->operation == Operation::replace)
        std::memcpy(memory, operand, bytes);
    else
        datatype::apply_to(*u.op, operand, memory, memory, count, *u.element);
}

/// Elements with gaps in them, or that lie anyhow.
void update_anyhow(const Update& u, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count) {
    const Datatype& element = *u.element;
    const auto size = static_cast<uint64_t>(element.size);
    alignas(32) std::byte value[kLargestElement] = {}, now[kLargestElement] = {};
    for (int64_t i = 0; i < count; ++i, memory += element.extent) {
        datatype::copy(element, 1, memory, now);
        if (old) datatype::pack(element, 1, now, 0, old + static_cast<uint64_t>(i) * size, size);
        if (u.op->operation == Operation::no_op) continue;
        datatype::unpack(element, 1, value, 0, operand + static_cast<uint64_t>(i) * size, size);
        datatype::apply_to(*u.op, value, now, now, 1, element);
        datatype::copy(element, 1, now, memory);
    }
}

template <class Word>
void swap_word(std::byte* memory, const std::byte* operand, const std::byte* compare, std::byte* old) {
    Word value, expected;
    std::memcpy(&value, operand, sizeof value);
    std::memcpy(&expected, compare, sizeof expected);
    __atomic_compare_exchange_n(reinterpret_cast<Word*>(memory), &expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    std::memcpy(old, &expected, sizeof expected);
}

}  // namespace

namespace {

void update_by_processor(const Update& u, Known way, std::byte* memory, const std::byte* operand, std::byte* old,
                         int64_t count) {
    switch (u.element->size) {
        case 1:
            return update_words<uint8_t>(u, way, memory, operand, old, count);
        case 2:
            return update_words<uint16_t>(u, way, memory, operand, old, count);
        case 4:
            return update_words<uint32_t>(u, way, memory, operand, old, count);
        default:
            return update_words<uint64_t>(u, way, memory, operand, old, count);
    }
}

/// Bytes that are changed before others get their turn.
constexpr int64_t kAtATime = 16 * 1024;

}  // namespace

void update(const Update& u, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count,
            const Exclusion* exclusion) {
    const Datatype& element = *u.element;
    const bool in_place = is_word(element) && is_aligned(memory, element.size);
    const Known way = known(u);
    if (in_place && !exclusion) return update_by_processor(u, way, memory, operand, old, count);
    if (in_place && count == 1 && way != Known::none) {
        // Whoever is at the memory stores whole words, so looking at one needs no mark.
        const Marked marked(way == Known::load ? nullptr : exclusion);
        return update_by_processor(u, way, memory, operand, old, 1);
    }
    const bool in_bulk = in_place && (!operand || is_aligned(operand, element.size));
    const int64_t most = std::max<int64_t>(1, kAtATime / element.size);
    for (int64_t n; count > 0; count -= n) {
        n = std::min(count, most);
        const Alone alone(exclusion);
        (in_bulk ? update_in_bulk : update_anyhow)(u, memory, operand, old, n);
        memory += n * element.extent;
        if (operand) operand += n * element.size;
        if (old) old += n * element.size;
    }
}

void compare_and_swap(const Datatype& element, std::byte* memory, const std::byte* operand, const std::byte* compare,
                      std::byte* old, const Exclusion* exclusion) {
    if (is_word(element) && is_aligned(memory, element.size)) {
        const Marked marked(exclusion);
        switch (element.size) {
            case 1:
                return swap_word<uint8_t>(memory, operand, compare, old);
            case 2:
                return swap_word<uint16_t>(memory, operand, compare, old);
            case 4:
                return swap_word<uint32_t>(memory, operand, compare, old);
            default:
                return swap_word<uint64_t>(memory, operand, compare, old);
        }
    }
    const Alone alone(exclusion);
    const auto size = static_cast<size_t>(element.size);
    std::memcpy(old, memory, size);
    if (std::memcmp(old, compare, size) == 0) std::memcpy(memory, operand, size);
}

}  // namespace starling::rma
