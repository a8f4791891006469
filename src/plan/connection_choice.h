// Which of the wanted connections to ask for now. Pure, so that it can be tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace starling::plan {

/// How a wanted connection stands.
enum class Standing : uint8_t {
    missing,
    held,    ///< it is open, or is being opened or closed
    barred,  ///< it can't be had now: the other side has refused it, or is gone
};

/// The places of one transport.
struct Places {
    uint32_t limit = 0;    ///< how many there are
    uint32_t free = 0;     ///< of these
    uint32_t leaving = 0;  ///< about to be free: their connections are closing
};

/// Of those wanted, by falling priority, which to ask for: as many as have a place, or will have one when others have gone that are
/// not going yet. Who is barred leaves his place to the next.
std::vector<size_t> whom_to_ask(std::span<const Standing> wanted, Places places);

}  // namespace starling::plan
