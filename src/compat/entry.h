// Defines a handwritten entry point of a shim, under the names PMPI_X and MPI_X; the latter is weak, so that tools can replace it.
#pragma once

#define COMPAT_ENTRY(returns, name, parameters)                                    \
    [[gnu::visibility("default")]] returns name parameters __asm__("PMPI_" #name); \
    __asm__(".weak MPI_" #name "\n.set MPI_" #name ", PMPI_" #name);               \
    returns name parameters
