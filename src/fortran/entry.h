// An entry point of the Fortran interfaces: a subroutine of mpif.h and module mpi, and the same of mpi_f08, each also under the name
// by which tools reach it.
#pragma once

#define FORTRAN_ALIAS(alias, name) __asm__(".weak " alias "\n.set " alias ", " name);

// MPICH's module mpi_f08 has its own names for what tools reach, and for large counts.
#ifdef FORTRAN_OF_MPICH
#define FORTRAN_MODERN_NAMES(name) FORTRAN_ALIAS("pmpir_" #name "_f08_", "pmpi_" #name "_")
#define FORTRAN_LARGE(name)                                        \
    FORTRAN_ALIAS("mpi_" #name "_f08_large_", "pmpi_" #name "_c_") \
    FORTRAN_ALIAS("pmpir_" #name "_f08_large_", "pmpi_" #name "_c_")
// Of what mpi_f08 has another procedure for than the older interfaces.
#define FORTRAN_MODERN_ONLY(name)                                      \
    FORTRAN_ALIAS("pmpir_" #name "_f08_", "pmpi_" #name "_f08_")       \
    FORTRAN_ALIAS("mpi_" #name "_f08_large_", "pmpi_" #name "_c_f08_") \
    FORTRAN_ALIAS("pmpir_" #name "_f08_large_", "pmpi_" #name "_c_f08_")
#else
#define FORTRAN_MODERN_NAMES(name)
#define FORTRAN_LARGE(name)
#define FORTRAN_MODERN_ONLY(name)
#endif

// Two underscores: of compilers that were asked for what g77 did.
#define FORTRAN_NAMES(name)                                 \
    FORTRAN_ALIAS("mpi_" #name "_", "pmpi_" #name "_")      \
    FORTRAN_ALIAS("mpi_" #name "_f08_", "pmpi_" #name "_")  \
    FORTRAN_ALIAS("pmpi_" #name "_f08_", "pmpi_" #name "_") \
    FORTRAN_MODERN_NAMES(name)

/// Of both interfaces; pmpi_<name>_ is what is defined.
#define FORTRAN_ENTRY(name, parameters)                                                 \
    [[gnu::visibility("default")]] void f_##name parameters __asm__("pmpi_" #name "_"); \
    FORTRAN_NAMES(name)                                                                 \
    void f_##name parameters
#define FORTRAN_FUNCTION(returns, name, parameters)                                        \
    [[gnu::visibility("default")]] returns f_##name parameters __asm__("pmpi_" #name "_"); \
    FORTRAN_NAMES(name)                                                                    \
    returns f_##name parameters

/// The address is given as a type(c_ptr) as well: another name in module mpi.
#define FORTRAN_C_POINTER(name)                             \
    FORTRAN_ALIAS("mpi_" #name "_cptr_", "pmpi_" #name "_") \
    FORTRAN_ALIAS("pmpi_" #name "_cptr_", "pmpi_" #name "_")

/// Of one interface alone: `symbol` is the whole name but the last underscore, without the p of pmpi.
#define FORTRAN_ONLY(symbol, parameters)                                                \
    [[gnu::visibility("default")]] void f_##symbol parameters __asm__("p" #symbol "_"); \
    FORTRAN_ALIAS(#symbol "_", "p" #symbol "_")                                         \
    void f_##symbol parameters
