// What a procedure with bind(C) gets for an array of any type and rank (Fortran 2018 section 18.5.3). The standard leaves the order to each
// compiler; this is gfortran's and flang's as far as it goes, and tools/wrappers/descriptors looks before a compiler is taken at its word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::fortran {

struct Descriptor {
    void* first;     ///< element, in the order of the array
    size_t element;  ///< bytes
    int version;
    int8_t dimensions;  ///< of a scalar 0
    int8_t others[3];   ///< type and attribute, in either order
    struct Dimension {
        ptrdiff_t lower, extent, stride;  ///< extent of the last one: -1 if nobody knows; stride in bytes
    } of[15];                             ///< as many as there are dimensions

    void* address() const { return first; }
    ptrdiff_t length() const { return static_cast<ptrdiff_t>(element); }
    int rank() const { return dimensions; }
    ptrdiff_t extent(int dimension) const { return of[dimension].extent; }
    ptrdiff_t stride(int dimension) const { return of[dimension].stride; }
};
static_assert(offsetof(Descriptor, dimensions) == 20 && offsetof(Descriptor, of) == 24);

}  // namespace starling::fortran
