// Point-to-point synchronization (OpenSHMEM 1.5 section 9.9): waits for and tests of this PE's memory that other PEs write.
#pragma once

#include "oshmem/mapped_heap.h"

namespace starling::oshmem {

/// The comparisons SHMEM_CMP_EQ to SHMEM_CMP_GE, with the numbers of shmem.h.
enum Comparison : int { kEqual = 1, kUnequal = 2, kGreater = 3, kGreaterEqual = 4, kLess = 5, kLessEqual = 6 };

template <class T>
bool compare(T value, int comparison, T with) {
    switch (comparison) {
        case kEqual:
            return value == with;
        case kUnequal:
            return value != with;
        case kGreater:
            return value > with;
        case kGreaterEqual:
            return value >= with;
        case kLess:
            return value < with;
        default:
            return value <= with;
    }
}

template <class T>
bool holds(const T* var, int comparison, T with) {
    T value;
    __atomic_load(var, &value, __ATOMIC_ACQUIRE);
    return compare(value, comparison, with);
}

inline void check_comparison(const char* name, int comparison) {
    if (comparison < kEqual || comparison > kLessEqual)
        starling_shmem_complain(name, "the comparison is not one of SHMEM_CMP_EQ, _NE, _GT, _LE, _LT and _GE");
}

template <class T>
void check_variables(const char* name, const T* vars, size_t n) {
    if (starling_shmem_near.checks) [[unlikely]]
        starling_shmem_check(name, "ivar", vars, n * sizeof(T));
}

/// Waits until `condition()` is true.
template <class F>
void wait_for(const char* name, F& condition) {
    if (condition()) return poll_after_load();
    starling_shmem_wait(
        name, [](void* f) { return static_cast<bool>((*static_cast<F*>(f))()); }, &condition);
}

/// Several variables in this PE's memory, each compared with one common value or with a separate value. Variables with a nonzero status
/// are ignored.
template <class T>
struct Several {
    const T* vars;
    size_t n;
    const int* status;
    int comparison;
    T value;
    const T* values;  ///< values to compare with, one per variable; null: `value` for all

    void check(const char* name) const {
        check_comparison(name, comparison);
        check_variables(name, vars, n);
    }
    bool left_out(size_t i) const { return status && status[i] != 0; }
    bool holds_at(size_t i) const { return holds(vars + i, comparison, values ? values[i] : value); }
    /// Returns whether all variables are to be ignored, because their status is nonzero.
    bool empty() const {
        for (size_t i = 0; i < n; ++i)
            if (!left_out(i)) return false;
        return true;
    }
    bool all() const {
        for (size_t i = 0; i < n; ++i)
            if (!left_out(i) && !holds_at(i)) return false;
        return true;
    }
    /// Returns the index of a variable for which the comparison holds; SIZE_MAX if there is none. Each call begins at a different variable,
    /// so that none is starved.
    size_t any() const {
        const size_t first = n > 1 ? begin() : 0;
        for (size_t i = first; i < n; ++i)
            if (!left_out(i) && holds_at(i)) return i;
        for (size_t i = 0; i < first; ++i)
            if (!left_out(i) && holds_at(i)) return i;
        return SIZE_MAX;
    }
    /// Returns the index of the variable to check first. Successive calls use multiples of the golden ratio, which are spread evenly
    /// whatever other calls happen in between.
    size_t begin() const {
        std::atomic<uint32_t>& picks = starling_shmem_near.picks;
        const uint32_t pick = picks.load(std::memory_order_relaxed) + 1;
        picks.store(pick, std::memory_order_relaxed);
        const auto part = static_cast<uint32_t>(pick * 0x9e3779b9u);
        return static_cast<size_t>(static_cast<unsigned __int128>(part) * n >> 32);
    }
    size_t some(size_t* indices) const {
        size_t found = 0;
        for (size_t i = 0; i < n; ++i)
            if (!left_out(i) && holds_at(i)) indices[found++] = i;
        return found;
    }

    void wait_all(const char* name) const {
        check(name);
        auto condition = [this] { return all(); };
        wait_for(name, condition);
    }
    size_t wait_any(const char* name) const {
        check(name);
        size_t found = SIZE_MAX;
        auto condition = [&] { return (found = any()) != SIZE_MAX; };
        if (!empty()) wait_for(name, condition);
        return found;
    }
    size_t wait_some(const char* name, size_t* indices) const {
        check(name);
        size_t found = 0;
        auto condition = [&] { return (found = some(indices)) != 0; };
        if (!empty()) wait_for(name, condition);
        return found;
    }
    int test_all(const char* name) const {
        check(name);
        if (all()) return poll_after_load(), 1;
        starling_shmem_poll();
        return all();
    }
    size_t test_any(const char* name) const {
        check(name);
        const size_t found = any();
        if (found != SIZE_MAX || empty()) return poll_after_load(), found;
        starling_shmem_poll();
        return any();
    }
    size_t test_some(const char* name, size_t* indices) const {
        check(name);
        const size_t found = some(indices);
        if (found != 0 || empty()) return poll_after_load(), found;
        starling_shmem_poll();
        return some(indices);
    }
};

template <class T>
void wait_until(const char* name, const T* var, int comparison, T value) {
    check_comparison(name, comparison);
    check_variables(name, var, 1);
    auto condition = [=] { return holds(var, comparison, value); };
    wait_for(name, condition);
}
template <class T>
void wait(const char* name, const T* var, T value) {
    wait_until<T>(name, var, kUnequal, value);
}
template <class T>
int test(const char* name, const T* var, int comparison, T value) {
    return Several<T>{var, 1, nullptr, comparison, value, nullptr}.test_all(name);
}

template <class T>
void wait_until_all(const char* name, const T* vars, size_t n, const int* status, int cmp, T value) {
    Several<T>{vars, n, status, cmp, value, nullptr}.wait_all(name);
}
template <class T>
size_t wait_until_any(const char* name, const T* vars, size_t n, const int* status, int cmp, T value) {
    return Several<T>{vars, n, status, cmp, value, nullptr}.wait_any(name);
}
template <class T>
size_t wait_until_some(const char* name, const T* vars, size_t n, size_t* indices, const int* status, int cmp, T value) {
    return Several<T>{vars, n, status, cmp, value, nullptr}.wait_some(name, indices);
}
template <class T>
void wait_until_all_vector(const char* name, const T* vars, size_t n, const int* status, int cmp, const T* values) {
    Several<T>{vars, n, status, cmp, T{}, values}.wait_all(name);
}
template <class T>
size_t wait_until_any_vector(const char* name, const T* vars, size_t n, const int* status, int cmp, const T* values) {
    return Several<T>{vars, n, status, cmp, T{}, values}.wait_any(name);
}
template <class T>
size_t wait_until_some_vector(const char* name, const T* vars, size_t n, size_t* indices, const int* status, int cmp,
                              const T* values) {
    return Several<T>{vars, n, status, cmp, T{}, values}.wait_some(name, indices);
}
template <class T>
int test_all(const char* name, const T* vars, size_t n, const int* status, int cmp, T value) {
    return Several<T>{vars, n, status, cmp, value, nullptr}.test_all(name);
}
template <class T>
size_t test_any(const char* name, const T* vars, size_t n, const int* status, int cmp, T value) {
    return Several<T>{vars, n, status, cmp, value, nullptr}.test_any(name);
}
template <class T>
size_t test_some(const char* name, const T* vars, size_t n, size_t* indices, const int* status, int cmp, T value) {
    return Several<T>{vars, n, status, cmp, value, nullptr}.test_some(name, indices);
}
template <class T>
int test_all_vector(const char* name, const T* vars, size_t n, const int* status, int cmp, const T* values) {
    return Several<T>{vars, n, status, cmp, T{}, values}.test_all(name);
}
template <class T>
size_t test_any_vector(const char* name, const T* vars, size_t n, const int* status, int cmp, const T* values) {
    return Several<T>{vars, n, status, cmp, T{}, values}.test_any(name);
}
template <class T>
size_t test_some_vector(const char* name, const T* vars, size_t n, size_t* indices, const int* status, int cmp,
                        const T* values) {
    return Several<T>{vars, n, status, cmp, T{}, values}.test_some(name, indices);
}

inline uint64_t signal_wait_until(const char* name, uint64_t* signal, int cmp, uint64_t value) {
    check_comparison(name, cmp);
    check_variables(name, signal, 1);
    uint64_t seen = 0;
    auto condition = [&] { return compare(seen = __atomic_load_n(signal, __ATOMIC_ACQUIRE), cmp, value); };
    wait_for(name, condition);
    return seen;
}

}  // namespace starling::oshmem
