// Only in the shared library that replaces the real one: a device does not use the program's allocator, which a test may make fail.
#include <cstddef>
#include <new>

extern "C" void* __libc_malloc(size_t bytes);
extern "C" void __libc_free(void* memory);

void* operator new(size_t bytes) {
    if (void* memory = __libc_malloc(bytes)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { __libc_free(memory); }
void operator delete(void* memory, size_t) noexcept { __libc_free(memory); }
