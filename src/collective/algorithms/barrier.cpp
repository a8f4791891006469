#include "collective/algorithms.h"

namespace starling::collective {

Task barrier_dissemination(View v) {
    for (int distance = 1; distance < v.n; distance *= 2) {
        const int to = (v.me + distance) % v.n, from = (v.me - distance + v.n) % v.n;
        co_await v.send_receive(nullptr, 0, byte_type(), to, nullptr, 0, byte_type(), from);
    }
    co_return v.error;
}

// Takes as many rounds as dissemination for a power of two. But messages are exchanged pairwise, so between hosts each partner's message
// acknowledges the other's.
Task barrier_recursive_doubling(View v) {
    for (int width = 1; width < v.n; width *= 2)
        co_await v.send_receive(nullptr, 0, byte_type(), v.me ^ width, nullptr, 0, byte_type(), v.me ^ width);
    co_return v.error;
}

Task barrier_tree(View v) {
    int distance = 1;
    for (; distance < v.n && !(v.me & distance); distance *= 2)
        if (v.me + distance < v.n) co_await v.receive(nullptr, 0, byte_type(), v.me + distance);
    if (v.me != 0) co_await v.send_receive(nullptr, 0, byte_type(), v.me - distance, nullptr, 0, byte_type(), v.me - distance);
    for (distance /= 2; distance > 0; distance /= 2)
        if (v.me + distance < v.n) co_await v.send(nullptr, 0, byte_type(), v.me + distance);
    co_return v.error;
}

}  // namespace starling::collective
