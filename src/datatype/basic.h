// The kinds of basic elements, for reductions and data conversion.
#pragma once

#include <cstdint>

namespace starling::datatype {

/// The kinds of basic elements. Several MPI constants may share one (MPI_INT, MPI_INTEGER, MPI_INT32_T).
enum class Basic : uint8_t {
    none,  ///< a derived type, without a basic kind
    byte,
    packed,
    character,  ///< one byte of text, without arithmetic
    wide_character,
    int8,
    int16,
    int32,
    int64,
    int128,
    uint8,
    uint16,
    uint32,
    uint64,
    boolean,  ///< C and C++ bool
    logical8,
    logical16,
    logical32,
    logical64,
    logical128,
    float16,
    float32,
    float64,
    float80,  ///< x87 long double, 16 bytes in memory
    float128,
    complex16,  ///< two float16 numbers; the complex kinds below are named in the same way
    complex32,
    complex64,
    complex80,
    complex128,
    pair,  ///< a value and an index, whose kinds are in Datatype::value and Datatype::index
};

}  // namespace starling::datatype
