// MUNGE, a site's authentication service between hosts: a daemon on each host seals bytes so that only a chosen user on hosts of the same
// site can open them. Its library is loaded on demand; Starling is not linked with it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace starling::launch {

/// Seals bytes for this user. Blocks for about a millisecond, while munged works. Returns false with the reason in `why`.
bool munge_seal(std::string_view bytes, std::string& credential, std::string& why);

/// Opens bytes that this user has sealed on any host; each host can open a credential once. Returns false with the reason in `why`.
bool munge_open(const std::string& credential, std::string& bytes, std::string& why);

inline constexpr size_t kMostCredential = 4096;  ///< maximum bytes of a credential

}  // namespace starling::launch
