#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace starling {

void draw_random(void* bytes, size_t size) {
    auto* next = static_cast<std::byte*>(bytes);
    while (size > 0) {
        const ssize_t got = getrandom(next, size, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) panic("the kernel returned no random numbers: %s", std::strerror(errno));
        next += got;
        size -= static_cast<size_t>(got);
    }
}

uint64_t draw_random_number() {
    uint64_t number = 0;
    while (number == 0) draw_random(&number, sizeof number);
    return number;
}

}  // namespace starling
