// Revocation of files (MPIX_File_revoke). A file is revoked with its private communicator (comm/failures.h). Then every pending and later
// collective call, and every access through the shared pointer, ends with MPIX_ERR_REVOKED. Independent accesses fail if they begin later.
//
// Not thread-safe: needs the library's lock.
#pragma once

#include "file/file.h"

namespace starling::file {

/// Revokes the file at all its members. Not collective. No effect if it is revoked already.
void revoke(File& file);

/// Returns whether this process knows that the file is revoked.
inline bool is_revoked(const File& file) { return file.comm->collective.revoked(); }

/// Returns MPIX_ERR_REVOKED with failure_text().
[[gnu::cold]] int why_revoked();

/// Makes a revocation end the pending accesses of the shared pointer. Call it when the file has its communicator.
void end_accesses_at_revocation(File& file);

}  // namespace starling::file
