// Allocates the fake devices' memory by libc's own malloc, because a test may make the program's allocator fail. Only the shared library
// that replaces the real libibverbs contains this file.
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
