// MUNGE, a site's own authentication between hosts: its daemon on each host seals bytes so that only a chosen user, on
// hosts of the same site, can open them. Its library is looked for when it is asked for; Starling does not link it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace starling::launch {

/// Bytes sealed for this very user. Blocks for the time that munged takes, about a millisecond. False with the
/// reason in `why`.
bool munge_seal(std::string_view bytes, std::string& credential, std::string& why);

/// Opens what this user has sealed, on whatever host; a credential can be opened once on each. False with the
/// reason.
bool munge_open(const std::string& credential, std::string& bytes, std::string& why);

inline constexpr size_t kMostCredential = 4096;  ///< bytes

}  // namespace starling::launch
