#include "launch/tree/key.h"

#include "base/random.h"

namespace starling::launch {

TreeKey make_key() {
    TreeKey key;
    draw_random(key.bytes.data(), key.bytes.size());
    return key;
}

}  // namespace starling::launch
