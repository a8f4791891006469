#include "launch/tree/key.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace starling::launch {

void fill_random(void* bytes, size_t size) {
    auto* at = static_cast<char*>(bytes);
    while (size > 0) {
        const ssize_t n = getrandom(at, size, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) panic("the kernel gives no random numbers: %s", std::strerror(errno));
        at += n;
        size -= static_cast<size_t>(n);
    }
}

TreeKey make_key() {
    TreeKey key;
    fill_random(key.bytes.data(), key.bytes.size());
    return key;
}

}  // namespace starling::launch
