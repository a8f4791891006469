// The argument that a procedure with bind(C) gets for an array of any type and rank (Fortran 2018 section 18.5.3). The standard leaves the
// order of the fields to the compiler. These are the fields that gfortran and flang have in common; tools/wrappers/descriptors checks a
// compiler before its descriptors are used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::fortran {

struct Descriptor {
    void* first;     ///< address of the first element in array order
    size_t element;  ///< bytes
    int version;
    int8_t dimensions;  ///< number of dimensions; 0 for a scalar
    int8_t others[3];   ///< type and attribute of the array, in an order that depends on the compiler
    struct Dimension {
        ptrdiff_t lower, extent, stride;  ///< extent: -1 in the last dimension if unknown; stride in bytes
    } of[15];                             ///< the dimensions; the first `dimensions` entries are used

    void* address() const { return first; }
    ptrdiff_t length() const { return static_cast<ptrdiff_t>(element); }
    int rank() const { return dimensions; }
    ptrdiff_t extent(int dimension) const { return of[dimension].extent; }
    ptrdiff_t stride(int dimension) const { return of[dimension].stride; }
};
static_assert(offsetof(Descriptor, dimensions) == 20 && offsetof(Descriptor, of) == 24);

}  // namespace starling::fortran
