// Macros that define an entry point under its names in all Fortran interfaces (mpif.h, mpi and mpi_f08), and under its profiling names.
#pragma once

#define FORTRAN_ALIAS(alias, name) __asm__(".weak " alias "\n.set " alias ", " name);

// Aliases for MPICH's module mpi_f08, which has other names for the profiling interface and for large counts.
#ifdef FORTRAN_OF_MPICH
#define FORTRAN_MODERN_NAMES(name) FORTRAN_ALIAS("pmpir_" #name "_f08_", "pmpi_" #name "_")
#define FORTRAN_LARGE(name)                                        \
    FORTRAN_ALIAS("mpi_" #name "_f08_large_", "pmpi_" #name "_c_") \
    FORTRAN_ALIAS("pmpir_" #name "_f08_large_", "pmpi_" #name "_c_")
// Aliases of a function that has one procedure for mpi_f08 and another for the older interfaces.
#define FORTRAN_MODERN_ONLY(name)                                      \
    FORTRAN_ALIAS("pmpir_" #name "_f08_", "pmpi_" #name "_f08_")       \
    FORTRAN_ALIAS("mpi_" #name "_f08_large_", "pmpi_" #name "_c_f08_") \
    FORTRAN_ALIAS("pmpir_" #name "_f08_large_", "pmpi_" #name "_c_f08_")
#else
#define FORTRAN_MODERN_NAMES(name)
#define FORTRAN_LARGE(name)
#define FORTRAN_MODERN_ONLY(name)
#endif

// Aliases of pmpi_<name>_: the public name, and the public and profiling names in mpi_f08. All are weak, so that tools can replace them.
#define FORTRAN_NAMES(name)                                 \
    FORTRAN_ALIAS("mpi_" #name "_", "pmpi_" #name "_")      \
    FORTRAN_ALIAS("mpi_" #name "_f08_", "pmpi_" #name "_")  \
    FORTRAN_ALIAS("pmpi_" #name "_f08_", "pmpi_" #name "_") \
    FORTRAN_MODERN_NAMES(name)

/// Defines an entry point that mpi_f08 and the older interfaces share, as pmpi_<name>_; its other names are aliases.
#define FORTRAN_ENTRY(name, parameters)                                                 \
    [[gnu::visibility("default")]] void f_##name parameters __asm__("pmpi_" #name "_"); \
    FORTRAN_NAMES(name)                                                                 \
    void f_##name parameters
#define FORTRAN_FUNCTION(returns, name, parameters)                                        \
    [[gnu::visibility("default")]] returns f_##name parameters __asm__("pmpi_" #name "_"); \
    FORTRAN_NAMES(name)                                                                    \
    returns f_##name parameters

/// Defines an entry point of an extension, as pmpix_<name>_, which all interfaces share.
#define FORTRAN_EXTENSION(name, parameters)                                              \
    [[gnu::visibility("default")]] void f_##name parameters __asm__("pmpix_" #name "_"); \
    FORTRAN_ALIAS("mpix_" #name "_", "pmpix_" #name "_")                                 \
    FORTRAN_ALIAS("mpix_" #name "_f08_", "pmpix_" #name "_")                             \
    FORTRAN_ALIAS("pmpix_" #name "_f08_", "pmpix_" #name "_")                            \
    void f_##name parameters

/// Aliases for the procedure of module mpi that takes a type(c_ptr) as its address argument.
#define FORTRAN_C_POINTER(name)                             \
    FORTRAN_ALIAS("mpi_" #name "_cptr_", "pmpi_" #name "_") \
    FORTRAN_ALIAS("pmpi_" #name "_cptr_", "pmpi_" #name "_")

/// Defines an entry point that only one interface has. `symbol` is its name without the final underscore and without the p of pmpi.
#define FORTRAN_ONLY(symbol, parameters)                                                \
    [[gnu::visibility("default")]] void f_##symbol parameters __asm__("p" #symbol "_"); \
    FORTRAN_ALIAS(#symbol "_", "p" #symbol "_")                                         \
    void f_##symbol parameters
