// The argument that MPICH's procedures of mpi_f08 get for an array of any type and rank: gfortran's own descriptor, from version 9 on,
// because the procedures are without bind(C).
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling::fortran {

struct Descriptor {
    void* first;     ///< address of the first element in array order
    size_t offset;   ///< offset of element (0, 0, ...)
    size_t element;  ///< bytes
    int version;
    int8_t dimensions, type;
    int16_t attribute;
    ptrdiff_t span;  ///< unit of the strides in bytes
    struct Dimension {
        ptrdiff_t stride, lower, upper;
    } of[15];  ///< the dimensions; the first `dimensions` entries are used

    void* address() const { return first; }
    ptrdiff_t length() const { return static_cast<ptrdiff_t>(element); }
    int rank() const { return dimensions; }
    ptrdiff_t extent(int dimension) const { return of[dimension].upper - of[dimension].lower + 1; }
    ptrdiff_t stride(int dimension) const { return of[dimension].stride * (span > 0 ? span : length()); }
};
static_assert(offsetof(Descriptor, dimensions) == 28 && offsetof(Descriptor, of) == 40);

}  // namespace starling::fortran
