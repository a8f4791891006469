#include "rma/update.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace starling::rma {

namespace {

using datatype::Basic;
using datatype::ReductionOperation;

/// Size of the largest predefined datatype, a complex number of two long doubles.
constexpr size_t kLargestElement = 32;

/// Returns whether an element is a word that the processor can change atomically.
bool is_word(const Datatype& element) {
    return element.contiguous && element.size <= 8 && (element.size & (element.size - 1)) == 0;
}

bool is_aligned(const std::byte* memory, int64_t size) {
    return (reinterpret_cast<uintptr_t>(memory) & (static_cast<uint64_t>(size) - 1)) == 0;
}

WordOperation known_operation(const Update& u) {
    const Basic basic = u.element->basic;
    switch (u.op->operation) {
        case ReductionOperation::no_op:
            return WordOperation::load;
        case ReductionOperation::replace:
            return WordOperation::exchange;
        case ReductionOperation::sum:
            if (basic == Basic::float32) return WordOperation::add_float;
            if (basic == Basic::float64) return WordOperation::add_double;
            return basic >= Basic::int8 && basic <= Basic::uint64 ? WordOperation::add : WordOperation::none;
        default:
            return WordOperation::none;
    }
}

/// Replaces the word by after(word), by compare-and-swap. Returns the previous value.
template <class Word, class F>
Word change_by_trying(Word* word, F&& after) {
    Word before = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &before, after(before), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {}
    return before;
}

template <class Number, class Word>
Word add_number(Word* word, Word value) {
    static_assert(sizeof(Number) == sizeof(Word));
    return change_by_trying(word, [value](Word before) {
        return std::bit_cast<Word>(std::bit_cast<Number>(value) + std::bit_cast<Number>(before));
    });
}

template <class Word>
Word change(const Update& u, WordOperation way, Word* word, Word value) {
    if (way == WordOperation::add) return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
    if (way == WordOperation::exchange) return __atomic_exchange_n(word, value, __ATOMIC_ACQ_REL);
    if (way == WordOperation::load) return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if constexpr (sizeof(Word) == sizeof(double))
        if (way == WordOperation::add_double) return add_number<double>(word, value);
    if constexpr (sizeof(Word) == sizeof(float))
        if (way == WordOperation::add_float) return add_number<float>(word, value);
    return change_by_trying(word, [&](Word before) {
        Word after;
        datatype::apply_to(*u.op, &value, &before, &after, 1, *u.element);
        return after;
    });
}

template <class Word>
void update_words(const Update& u, WordOperation way, std::byte* memory, const std::byte* operand, std::byte* old,
                  int64_t count) {
    for (int64_t at = 0; at < count * static_cast<int64_t>(sizeof(Word)); at += sizeof(Word)) {
        Word value = 0;
        if (operand) std::memcpy(&value, operand + at, sizeof value);
        const Word before = change(u, way, reinterpret_cast<Word*>(memory + at), value);
        if (old) std::memcpy(old + at, &before, sizeof before);
    }
}

/// A scope in which only the caller changes elements, because it holds the guard. Without an update lock no guard is taken, because there
/// is no other writer.
class Alone {
  public:
    explicit Alone(const UpdateLock* exclusion) : exclusion_(exclusion) {
        if (exclusion_) exclusion_->begin_all();
    }
    ~Alone() {
        if (exclusion_) exclusion_->end_all();
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

  private:
    const UpdateLock* exclusion_;
};

/// A scope around one atomic instruction, which this process announces by its mark (UpdateMark). If the mark cannot be set, the scope holds
/// the guard.
class Marked {
  public:
    explicit Marked(const UpdateLock* exclusion) : exclusion_(exclusion), marked_(exclusion && exclusion->begin_one()) {
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
    const UpdateLock* exclusion_;
    const bool marked_;
};

/// Updates many aligned elements by plain instructions, while no other process changes any.
[[gnu::always_inline]] inline void update_in_bulk(const Update& u, UpdateMethod way, std::byte* memory,
                                                  const std::byte* operand, std::byte* old, int64_t count) {
    const auto bytes = static_cast<uint64_t>(count * u.element->size);
    if (old) std::memcpy(old, memory, bytes);
    if (u.op->operation == ReductionOperation::no_op) return;
    if (way.kernel)
        way.kernel(operand, memory, memory, count);
    else
        std::memcpy(memory, operand, bytes);  // MPI_REPLACE
}

/// Updates elements that have gaps or are not aligned.
void update_anyhow(const Update& u, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count) {
    const Datatype& element = *u.element;
    const auto size = static_cast<uint64_t>(element.size);
    alignas(32) std::byte value[kLargestElement] = {}, now[kLargestElement] = {};
    for (int64_t i = 0; i < count; ++i, memory += element.extent) {
        datatype::copy(element, 1, memory, now);
        if (old) datatype::pack(element, 1, now, 0, old + static_cast<uint64_t>(i) * size, size);
        if (u.op->operation == ReductionOperation::no_op) continue;
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

[[gnu::always_inline]] inline void update_by_processor(const Update& u, UpdateMethod way, std::byte* memory,
                                                       const std::byte* operand, std::byte* old, int64_t count) {
    switch (way.bytes) {
        case 8:
            return update_words<uint64_t>(u, way.known, memory, operand, old, count);
        case 4:
            return update_words<uint32_t>(u, way.known, memory, operand, old, count);
        case 2:
            return update_words<uint16_t>(u, way.known, memory, operand, old, count);
        default:
            return update_words<uint8_t>(u, way.known, memory, operand, old, count);
    }
}

/// Returns whether the update is one instruction, and not a compare-and-swap loop.
bool is_single(WordOperation way) { return way == WordOperation::add || way == WordOperation::exchange; }

/// Number of bytes changed under one hold of the guard. Between holds, other processes can take the guard.
constexpr int64_t kAtATime = 16 * 1024;

/// Performs an update under the guard, if there is an update lock.
void update_alone(const Update& u, UpdateMethod way, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count,
                  const UpdateLock* exclusion) {
    const Datatype& element = *u.element;
    const bool in_place = way.bytes && is_aligned(memory, way.bytes) && (!operand || is_aligned(operand, way.bytes));
    if (in_place && count <= kAtATime / 8) {  // Words have up to 8 bytes, so the update then changes at most kAtATime bytes.
        const Alone alone(exclusion);
        return update_in_bulk(u, way, memory, operand, old, count);
    }
    const int64_t most = std::max<int64_t>(1, kAtATime / element.size);
    for (int64_t n; count > 0; count -= n) {
        n = std::min(count, most);
        const Alone alone(exclusion);
        if (in_place)
            update_in_bulk(u, way, memory, operand, old, n);
        else
            update_anyhow(u, memory, operand, old, n);
        memory += n * element.extent;
        if (operand) operand += n * element.size;
        if (old) old += n * element.size;
    }
}

}  // namespace

UpdateMethod way_of(const Update& u) {
    return {known_operation(u), is_word(*u.element) ? static_cast<uint8_t>(u.element->size) : uint8_t{0},
            datatype::kernel_for(*u.op, *u.element)};
}

void update_one(const Update& u, UpdateMethod way, std::byte* memory, const std::byte* operand, std::byte* old,
                const UpdateLock* exclusion) {
    if (!way.bytes || !is_aligned(memory, way.bytes)) return update_alone(u, way, memory, operand, old, 1, exclusion);
    // No mark is needed to read a word, because updates store whole words.
    if (exclusion && way.known != WordOperation::load) {
        const bool marked = is_single(way.known) ? exclusion->begin_one() : exclusion->begin_one_quickly();
        if (!marked) return update_alone(u, way, memory, operand, old, 1, exclusion);
        update_by_processor(u, way, memory, operand, old, 1);
        return exclusion->end_one();
    }
    update_by_processor(u, way, memory, operand, old, 1);
}

void update(const Update& u, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count,
            const UpdateLock* exclusion) {
    update(u, way_of(u), memory, operand, old, count, exclusion);
}

void update(const Update& u, UpdateMethod way, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count,
            const UpdateLock* exclusion) {
    if (count == 1) return update_one(u, way, memory, operand, old, exclusion);
    if (!exclusion && way.bytes && is_aligned(memory, way.bytes))
        return update_by_processor(u, way, memory, operand, old, count);
    update_alone(u, way, memory, operand, old, count, exclusion);
}

void compare_and_swap(const Datatype& element, std::byte* memory, const std::byte* operand, const std::byte* compare,
                      std::byte* old, const UpdateLock* exclusion) {
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
