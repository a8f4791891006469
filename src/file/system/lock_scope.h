// Whether locks of a file exclude processes of other hosts. Mount options can limit them to one host (NFS: `nolock`, `local_lock`; Lustre:
// `localflock`); a lock is then granted as if all was well.
#pragma once

#include <string_view>

namespace starling::file {

bool locks_end_at_host(int descriptor);

/// Searches the text of /proc/self/mountinfo for the file system with this number (`major:minor`), and its options.
bool locks_end_at_host(std::string_view mounts, std::string_view number);

}  // namespace starling::file
