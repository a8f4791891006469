// Defines a handwritten entry point of a shim, under the names PMPI_X and MPI_X; the latter is weak, so that tools can replace it.
#pragma once

#define COMPAT_ENTRY_OF(prefix, returns, name, parameters)                            \
    [[gnu::visibility("default")]] returns name parameters __asm__("P" prefix #name); \
    __asm__(".weak " prefix #name "\n.set " prefix #name ", P" prefix #name);         \
    returns name parameters
#define COMPAT_ENTRY(returns, name, parameters) COMPAT_ENTRY_OF("MPI_", returns, name, parameters)
/// Defines the entry point of an extension: PMPIX_X and MPIX_X.
#define COMPAT_EXTENSION(returns, name, parameters) COMPAT_ENTRY_OF("MPIX_", returns, name, parameters)
