// An entry point of a shim that is written by hand: under the names PMPI_X and, for tools to replace, MPI_X.
#pragma once

#define COMPAT_ENTRY(returns, name, parameters)                                    \
    [[gnu::visibility("default")]] returns name parameters __asm__("PMPI_" #name); \
    __asm__(".weak MPI_" #name "\n.set MPI_" #name ", PMPI_" #name);               \
    returns name parameters
