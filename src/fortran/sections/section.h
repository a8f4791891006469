// Array arguments of mpi_f08 procedures, from compilers that pass descriptors. The array may be a section with gaps, which the library
// accesses without a copy. MPI's counts and displacements treat its elements as contiguous (MPI 5.0 section 19.1.12).
#pragma once

#include "fortran/arguments.h"

#include COMPAT_DESCRIPTOR

namespace starling::fortran {

/// Returns whether the array is contiguous. An array without a size in its last dimension (-1) is contiguous. So is a null array: programs
/// pass unallocated arrays where an argument is not significant, as on all processes except the root. The rest of the descriptor is then
/// undefined.
inline bool lies_together(const Descriptor& array) {
    if (!array.address()) return true;
    ptrdiff_t next = array.length();
    for (int i = 0; i < array.rank(); ++i) {
        const ptrdiff_t extent = array.extent(i);
        if (extent <= 0) return true;
        if (extent > 1 && array.stride(i) != next) return false;
        next *= extent;
    }
    return true;
}

/// An array with gaps; dimensions that can be described as one are merged.
struct Section {
    explicit Section(const Descriptor& array);

    /// Returns the number of elements, each of `length` contiguous bytes.
    MPI_Count elements() const;
    MPI_Count bytes() const { return elements() * length; }
    /// Converts an offset `at` in the contiguous data to the offset of that byte from the array's first byte.
    MPI_Count place_of(MPI_Count at) const;

    struct SectionDimension {
        MPI_Count extent, stride;
    };
    std::byte* address;
    MPI_Count length;
    int rank = 0;
    SectionDimension dimensions[15];
};

/// Returns the address of an array, for calls that use a single element or an array that is always contiguous.
inline void* first_of(const Descriptor* array) { return compat::place(array->address()); }

/// Reports an array with gaps into which the library would write directly, through the error handler; returns the error.
int refuse_gaps();

/// Data that a call describes by buffer, count and datatype. An array with gaps is replaced by one element of a derived type, which the
/// library keeps as long as the operation needs it.
class SectionData {
  public:
    SectionData(const Descriptor* array, MPI_Count count, MPI_Datatype type) : SectionData(first_of(array), count, type) {
        if (!lies_together(*array)) [[unlikely]]
            take(*array);
    }
    SectionData(const SectionData&) = delete;
    ~SectionData() {
        if (made_) [[unlikely]]
            release();
    }
    void* address() const { return address_; }
    MPI_Count count() const { return count_; }
    MPI_Datatype type() const { return type_; }

  protected:
    SectionData(void* address, MPI_Count count, MPI_Datatype type) : address_(address), count_(count), type_(type) {}
    void replace(MPI_Datatype by);
    void refuse();

  private:
    void take(const Descriptor& array);
    void release();

    void* const address_;
    MPI_Count count_;
    MPI_Datatype type_;
    bool made_ = false;
};

/// The data of a partitioned message: partitions of `count` elements each.
class PartitionedData : public SectionData {
  public:
    PartitionedData(const Descriptor* array, int partitions, MPI_Count count, MPI_Datatype type)
        : SectionData(first_of(array), count, type) {
        if (!lies_together(*array)) [[unlikely]]
            take(*array, partitions);
    }

  private:
    void take(const Descriptor& array, int partitions);
};

/// Buffers of a call that accesses the data in any order or requires contiguous data. Arrays with gaps are replaced by contiguous copies.
class StandIns {
  public:
    StandIns() = default;
    StandIns(const StandIns&) = delete;
    ~StandIns() {
        if (all_) [[unlikely]]
            finish();
    }
    /// Return the buffer for an argument: read() if the call only reads it, written() if it may also write.
    void* read(const Descriptor* array) { return lies_together(*array) ? first_of(array) : stand_in(*array, false); }
    void* written(const Descriptor* array) { return lies_together(*array) ? first_of(array) : stand_in(*array, true); }
    /// Keeps the copies until the operation of the request completes. The request is null if the call has failed.
    void belong_to(const int* request) {
        if (all_) [[unlikely]]
            transfer(*request);
    }

  private:
    void* stand_in(const Descriptor& array, bool written);
    void finish();
    void transfer(int request);

    struct All;
    All* all_ = nullptr;
};

}  // namespace starling::fortran
