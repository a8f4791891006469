// Atomic memory operations (OpenSHMEM 1.5 section 9.7) and signals (9.8).
#pragma once

#include <type_traits>

#include "oshmem/rma.h"

namespace starling::oshmem {

using shmem::Element, shmem::Operator;

template <class T>
constexpr Element element_of() {
    if constexpr (std::is_same_v<T, float>) return Element::float32;
    if constexpr (std::is_same_v<T, double>) return Element::float64;
    if constexpr (std::is_same_v<T, long double>) return Element::extended;
    if constexpr (std::is_same_v<T, float _Complex>) return Element::complex64;
    if constexpr (std::is_same_v<T, double _Complex>) return Element::complex128;
    if constexpr (std::is_integral_v<T>) {
        constexpr int power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return static_cast<Element>(static_cast<int>(std::is_signed_v<T> ? Element::int8 : Element::uint8) + power);
    }
}

/// The unsigned integer with the size of an element.
template <class T>
using AtomicWord = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
AtomicWord<T> bits_of(T value) {
    return __builtin_bit_cast(AtomicWord<T>, value);
}

/// Applies an operation to a word in mapped memory and returns the old value. The integer is unsigned, so that sums wrap around.
template <class T>
T do_here(std::byte* memory, Operator op, T operand) {
    auto* word = reinterpret_cast<AtomicWord<T>*>(memory);
    const AtomicWord<T> value = bits_of(operand);
    AtomicWord<T> before;
    switch (op) {
        case Operator::sum:
            before = __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
            break;
        case Operator::band:
            before = __atomic_fetch_and(word, value, __ATOMIC_SEQ_CST);
            break;
        case Operator::bor:
            before = __atomic_fetch_or(word, value, __ATOMIC_SEQ_CST);
            break;
        case Operator::bxor:
            before = __atomic_fetch_xor(word, value, __ATOMIC_SEQ_CST);
            break;
        case Operator::replace:
            before = __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
            break;
        default:
            before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
            break;
    }
    return __builtin_bit_cast(T, before);
}

template <class T>
bool is_aligned(const void* address) {
    return reinterpret_cast<uintptr_t>(address) % sizeof(T) == 0;
}

/// Applies an operation to an element of a PE; stores the old value in `old`, unless that is null.
template <class T>
void change(const char* name, void* context, void* dest, Operator op, T operand, T* old, int pe, bool nbi) {
    const int to = world_pe(context, pe);
    std::byte* there = is_aligned<T>(dest) ? reach(dest, sizeof(T), to) : nullptr;
    if (!there) [[unlikely]] {
        const void* given = op == Operator::look ? nullptr : &operand;
        return starling_shmem_update(name, context, element_of<T>(), op, dest, given, old, pe, nbi);
    }
    const T before = do_here<T>(there, op, operand);
    if (op != Operator::look) wake(to);
    if (!old) return;
    *old = before;
    poll_after_load();
}

template <class T>
T fetch_change(const char* name, void* context, const void* dest, Operator op, T operand, int pe) {
    T old;
    change<T>(name, context, const_cast<void*>(dest), op, operand, &old, pe, false);
    return old;
}

template <class T>
T atomic_fetch(const char* name, void* context, const void* source, int pe) {
    return fetch_change<T>(name, context, source, Operator::look, T{}, pe);
}
template <class T>
T atomic_swap(const char* name, void* context, void* dest, T value, int pe) {
    return fetch_change<T>(name, context, dest, Operator::replace, value, pe);
}
template <class T>
T atomic_fetch_add(const char* name, void* context, void* dest, T value, int pe) {
    return fetch_change<T>(name, context, dest, Operator::sum, value, pe);
}
template <class T>
T atomic_fetch_inc(const char* name, void* context, void* dest, int pe) {
    return fetch_change<T>(name, context, dest, Operator::sum, T{1}, pe);
}
template <class T>
T atomic_fetch_and(const char* name, void* context, void* dest, T value, int pe) {
    return fetch_change<T>(name, context, dest, Operator::band, value, pe);
}
template <class T>
T atomic_fetch_or(const char* name, void* context, void* dest, T value, int pe) {
    return fetch_change<T>(name, context, dest, Operator::bor, value, pe);
}
template <class T>
T atomic_fetch_xor(const char* name, void* context, void* dest, T value, int pe) {
    return fetch_change<T>(name, context, dest, Operator::bxor, value, pe);
}

template <class T>
void atomic_set(const char* name, void* context, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::replace, value, nullptr, pe, false);
}
template <class T>
void atomic_add(const char* name, void* context, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::sum, value, nullptr, pe, false);
}
template <class T>
void atomic_inc(const char* name, void* context, void* dest, int pe) {
    change<T>(name, context, dest, Operator::sum, T{1}, nullptr, pe, false);
}
template <class T>
void atomic_and(const char* name, void* context, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::band, value, nullptr, pe, false);
}
template <class T>
void atomic_or(const char* name, void* context, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::bor, value, nullptr, pe, false);
}
template <class T>
void atomic_xor(const char* name, void* context, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::bxor, value, nullptr, pe, false);
}

template <class T>
void atomic_fetch_nbi(const char* name, void* context, T* old, const void* source, int pe) {
    change<T>(name, context, const_cast<void*>(source), Operator::look, T{}, old, pe, true);
}
template <class T>
void atomic_swap_nbi(const char* name, void* context, T* old, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::replace, value, old, pe, true);
}
template <class T>
void atomic_fetch_add_nbi(const char* name, void* context, T* old, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::sum, value, old, pe, true);
}
template <class T>
void atomic_fetch_inc_nbi(const char* name, void* context, T* old, void* dest, int pe) {
    change<T>(name, context, dest, Operator::sum, T{1}, old, pe, true);
}
template <class T>
void atomic_fetch_and_nbi(const char* name, void* context, T* old, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::band, value, old, pe, true);
}
template <class T>
void atomic_fetch_or_nbi(const char* name, void* context, T* old, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::bor, value, old, pe, true);
}
template <class T>
void atomic_fetch_xor_nbi(const char* name, void* context, T* old, void* dest, T value, int pe) {
    change<T>(name, context, dest, Operator::bxor, value, old, pe, true);
}

template <class T>
void compare_swap(const char* name, void* context, void* dest, T cond, T value, T* old, int pe, bool nbi) {
    const int to = world_pe(context, pe);
    std::byte* there = is_aligned<T>(dest) ? reach(dest, sizeof(T), to) : nullptr;
    if (!there) [[unlikely]]
        return starling_shmem_compare_swap(name, context, element_of<T>(), dest, &cond, &value, old, pe, nbi);
    AtomicWord<T> before = bits_of(cond);
    __atomic_compare_exchange_n(reinterpret_cast<AtomicWord<T>*>(there), &before, bits_of(value), false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    *old = __builtin_bit_cast(T, before);
    wake(to);
    poll_after_load();
}

template <class T>
T atomic_compare_swap(const char* name, void* context, void* dest, T cond, T value, int pe) {
    T old;
    compare_swap<T>(name, context, dest, cond, value, &old, pe, false);
    return old;
}
template <class T>
void atomic_compare_swap_nbi(const char* name, void* context, T* old, void* dest, T cond, T value, int pe) {
    compare_swap<T>(name, context, dest, cond, value, old, pe, true);
}

/// Converts SHMEM_SIGNAL_SET and SHMEM_SIGNAL_ADD to an operator.
inline Operator signal_operator(const char* name, int op) {
    if (op != 0 && op != 1) starling_shmem_complain(name, "the operation is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD");
    return op == 0 ? Operator::replace : Operator::sum;
}

template <class T>
void put_with_signal(const char* name, void* context, void* dest, const void* source, size_t n, uint64_t* signal,
                     uint64_t value, int op, int pe, bool nbi) {
    const Operator how = signal_operator(name, op);
    const int to = world_pe(context, pe);
    std::byte* there = n == 0 ? nullptr : reach(dest, n * sizeof(T), to);
    std::byte* flag = is_aligned<uint64_t>(signal) ? reach(signal, sizeof value, to) : nullptr;
    if (!there || !flag) [[unlikely]]
        return starling_shmem_put_signal(name, context, dest, source, n * sizeof(T), signal, value, how, pe, nbi);
    std::memcpy(there, source, n * sizeof(T));
    do_here<uint64_t>(flag, how, value);
    wake(to);
}

template <class T>
void put_signal(const char* name, void* context, void* dest, const void* source, size_t n, uint64_t* signal, uint64_t value,
                int op, int pe) {
    put_with_signal<T>(name, context, dest, source, n, signal, value, op, pe, false);
}
template <class T>
void put_signal_nbi(const char* name, void* context, void* dest, const void* source, size_t n, uint64_t* signal, uint64_t value,
                    int op, int pe) {
    put_with_signal<T>(name, context, dest, source, n, signal, value, op, pe, true);
}

inline void signal_set(const char* name, void* context, uint64_t* signal, uint64_t value, int pe) {
    atomic_set<uint64_t>(name, context, signal, value, pe);
}
inline void signal_add(const char* name, void* context, uint64_t* signal, uint64_t value, int pe) {
    atomic_add<uint64_t>(name, context, signal, value, pe);
}

inline uint64_t signal_fetch(const char*, const uint64_t* signal) {
    poll_after_load();
    return __atomic_load_n(signal, __ATOMIC_ACQUIRE);
}

}  // namespace starling::oshmem
