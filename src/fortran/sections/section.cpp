#include "fortran/sections/section.h"

namespace starling::fortran {

Section::Section(const Descriptor& array) : address(static_cast<std::byte*>(array.address())), length(array.length()) {
    for (int i = 0; i < array.rank(); ++i) {
        const SectionDimension next{array.extent(i), array.stride(i)};
        if (next.extent == 1) continue;
        if (rank == 0 && next.stride == length) {
            length *= next.extent;
        } else if (rank > 0 && next.stride == dimensions[rank - 1].stride * dimensions[rank - 1].extent) {
            dimensions[rank - 1].extent *= next.extent;
        } else {
            dimensions[rank++] = next;
        }
    }
}

MPI_Count Section::elements() const {
    MPI_Count all = 1;
    for (int i = 0; i < rank; ++i) all *= dimensions[i].extent;
    return all;
}

MPI_Count Section::place_of(MPI_Count at) const {
    MPI_Count element = at / length, place = at % length;
    for (int i = 0; i < rank; ++i) {
        place += element % dimensions[i].extent * dimensions[i].stride;
        element /= dimensions[i].extent;
    }
    return place;
}

int refuse_gaps() {
    compat::library.Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_BUFFER);
    return MPI_ERR_BUFFER;
}

}  // namespace starling::fortran
