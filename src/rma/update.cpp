#include "rma/update.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"

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
void update_words(const Update& u, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count) {
    const Known way = known(u);
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

/// For a scope; a null guard needs none.
class Guarded {
  public:
    explicit Guarded(Guard* guard) : guard_(guard) {
        if (guard_) guard_->lock();
    }
    ~Guarded() {
        if (guard_) guard_->unlock();
    }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

  private:
    Guard* guard_;
};

void update_guarded(const Update& u, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count) {
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

void Guard::lock() {
    const auto me = static_cast<uint32_t>(getpid());
    for (uint32_t tries = 1;; ++tries) {
        uint32_t expected = 0;
        if (holder.compare_exchange_weak(expected, me, std::memory_order_acquire)) return;
        __builtin_ia32_pause();
        // It is held for less than a slice, so who has it so long has lost its core, or its life.
        if (tries % 1024 != 0) continue;
        if (expected != 0 && kill(static_cast<pid_t>(expected), 0) != 0 && errno == ESRCH &&
            holder.compare_exchange_strong(expected, me, std::memory_order_acquire))
            return;
        usleep(50);
    }
}

void Guard::unlock() { holder.store(0, std::memory_order_release); }

void update(const Update& u, std::byte* memory, const std::byte* operand, std::byte* old, int64_t count, Guard* guard) {
    const Datatype& element = *u.element;
    if (is_word(element) && is_aligned(memory, element.size)) {
        switch (element.size) {
            case 1:
                return update_words<uint8_t>(u, memory, operand, old, count);
            case 2:
                return update_words<uint16_t>(u, memory, operand, old, count);
            case 4:
                return update_words<uint32_t>(u, memory, operand, old, count);
            default:
                return update_words<uint64_t>(u, memory, operand, old, count);
        }
    }
    const Guarded guarded(guard);
    update_guarded(u, memory, operand, old, count);
}

void compare_and_swap(const Datatype& element, std::byte* memory, const std::byte* operand, const std::byte* compare,
                      std::byte* old, Guard* guard) {
    if (is_word(element) && is_aligned(memory, element.size)) {
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
    const Guarded guarded(guard);
    const auto size = static_cast<size_t>(element.size);
    std::memcpy(old, memory, size);
    if (std::memcmp(old, compare, size) == 0) std::memcpy(memory, operand, size);
}

}  // namespace starling::rma
