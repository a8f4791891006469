// Simulated cycles of a rank's copies. The library times copies by the processor's counter, and chooses paths of messages by the result.
#pragma once

#include <cstdint>

#include "random.h"

namespace starling::simulation {

class CopyTimes {
  public:
    CopyTimes() = default;
    CopyTimes(uint64_t seed, uint32_t rank) : random_(seed ^ 0x8f1bbcdc5a827999ull ^ uint64_t{rank} << 32) {
        static constexpr Readers kReaders[] = {Readers::close, Readers::close, Readers::far, Readers::moving};
        readers_ = random_.one_of(kReaders);
    }

    /// Returns the counter, which has grown by the time of the copy since the last reading.
    uint64_t read() {
        const bool is_far = readers_ == Readers::far || (readers_ == Readers::moving && random_.one_in(2));
        return now_ += is_far ? kFar : kClose;
    }

  private:
    /// Where the readers of the copies run; `moving`: each copy meets them elsewhere.
    enum class Readers : uint8_t { close, far, moving };
    /// The library calls 10 cycles per cache line close, and 45 far.
    static constexpr uint64_t kClose = 1, kFar = 100'000'000;

    Random random_{0};
    Readers readers_ = Readers::close;
    uint64_t now_ = 0;
};

}  // namespace starling::simulation
