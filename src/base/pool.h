// Type-stable pools for objects to which the application holds handles. Memory that once held a T holds only objects of type T for the rest
// of the process, so the magic word of a freed object can be read safely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "base/mutex.h"

namespace starling {

/// A pool of T, which must have members `uint32_t magic` and `uint32_t pool_index` and a constant `static constexpr uint32_t kMagic`.
/// create() sets both; destroy() clears magic after the destructor. Chunks grow geometrically, so an idle process holds only a handful of
/// objects. Not thread-safe: the caller holds the library's lock.
template <class T>
class Pool {
  public:
    template <class... Args>
    [[gnu::no_sanitize("vptr")]] T* create(Args&&... args) {
        if (free_.empty()) grow();
        T* const place = free_.back();
        const uint32_t index = place->pool_index;
        T* object = new (place) T(static_cast<Args&&>(args)...);
        free_.pop_back();
        object->magic = T::kMagic;
        object->pool_index = index;
        ++live_;
        return object;
    }

    // The magic word is also read in slots without an object. If T has virtual functions, the sanitizer must not check the type there.
    [[gnu::no_sanitize("vptr")]] void destroy(T* object) {
        const uint32_t index = object->pool_index;
        object->~T();
        mark_free(object, index);
        free_.push_back(object);
        --live_;
    }

    /// Returns the live object with this index, or nullptr if there is none.
    [[gnu::no_sanitize("vptr")]] T* at(uint32_t index) {
        if (index >= capacity_) return nullptr;
        T* object = slot(index);
        return object->magic == T::kMagic ? object : nullptr;
    }

    std::size_t live() const { return live_; }

  private:
    static constexpr uint32_t kFirstChunk = 16;

    // Chunk k holds kFirstChunk << k objects and starts at index kFirstChunk * (2^k - 1).
    T* slot(uint32_t index) {
        const uint32_t k = 31 - static_cast<uint32_t>(__builtin_clz(index / kFirstChunk + 1));
        const uint32_t start = kFirstChunk * ((1u << k) - 1);
        return chunks_[k] + (index - start);
    }

    // Sets the members that a slot keeps while it holds no object.
    [[gnu::no_sanitize("vptr")]] static void mark_free(void* place, uint32_t index) {
        static_cast<T*>(place)->magic = 0;
        static_cast<T*>(place)->pool_index = index;
    }

    void grow() {
        const uint32_t count = kFirstChunk << chunks_.size();
        free_.reserve(free_.size() + count);
        void* memory = ::operator new (sizeof(T) * count, std::align_val_t{alignof(T)});
        T* chunk = static_cast<T*>(memory);
        chunks_.push_back(chunk);
        for (uint32_t i = count; i-- > 0;) {
            mark_free(&chunk[i], capacity_ + i);
            free_.push_back(&chunk[i]);
        }
        capacity_ += count;
    }

    std::vector<T*> chunks_;
    std::vector<T*> free_;
    uint32_t capacity_ = 0;
    std::size_t live_ = 0;
};

/// A thread-safe pool, for objects that threads create and destroy at any time, even before MPI_Init.
template <class T>
class SharedPool {
  public:
    template <class... Args>
    T* create(Args&&... args) {
        const MutexGuard guard(mutex_);
        return pool_.create(static_cast<Args&&>(args)...);
    }
    void destroy(T* object) {
        const MutexGuard guard(mutex_);
        pool_.destroy(object);
    }
    T* at(uint32_t index) {
        const MutexGuard guard(mutex_);
        return pool_.at(index);
    }

  private:
    Mutex mutex_;
    Pool<T> pool_;
};

}  // namespace starling
