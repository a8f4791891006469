// Arrays as procedures of mpi_f08 get them where the compiler passes descriptors: they may be sections with gaps, and stay where they are. MPI
// counts in them as if their elements lay behind each other (MPI 5.0 section 19.1.12).
#pragma once

#include "fortran/arguments.h"

#include COMPAT_DESCRIPTOR

namespace starling::fortran {

/// Whether there are no gaps. Of what has no size in its last dimension (-1) there are none, and in nothing neither: programs give arrays that
/// are not allocated where a call looks at none, as all but the root do, and then the rest of the descriptor is anything.
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

/// An array with gaps, in as few dimensions as say the same.
struct Section {
    explicit Section(const Descriptor& array);

    /// Elements, each of `length` bytes that lie together.
    MPI_Count elements() const;
    MPI_Count bytes() const { return elements() * length; }
    /// Where byte `at` of what lies behind each other is, relative to the first.
    MPI_Count place_of(MPI_Count at) const;

    struct Dimension {
        MPI_Count extent, stride;
    };
    std::byte* address;
    MPI_Count length;
    int rank = 0;
    Dimension dimensions[15];
};

/// Where an array begins, for calls that want no more of it: a single element, or what has no gaps by what the call is for.
inline void* first_of(const Descriptor* array) { return compat::place(array->address()); }

/// Tells the error handler that an array has gaps where the library would write into them, and gives the error.
int refuse_gaps();

/// Data that a call names by buffer, count and datatype. Where there are gaps one element of a type of their own stands for all of it, which the
/// library keeps as long as it needs it.
class Data {
  public:
    Data(const Descriptor* array, MPI_Count count, MPI_Datatype type) : Data(first_of(array), count, type) {
        if (!lies_together(*array)) [[unlikely]]
            take(*array);
    }
    Data(const Data&) = delete;
    ~Data() {
        if (made_) [[unlikely]]
            release();
    }
    void* address() const { return address_; }
    MPI_Count count() const { return count_; }
    MPI_Datatype type() const { return type_; }

  protected:
    Data(void* address, MPI_Count count, MPI_Datatype type) : address_(address), count_(count), type_(type) {}
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

/// The same of a message in partitions of `count` elements each.
class PartitionedData : public Data {
  public:
    PartitionedData(const Descriptor* array, int partitions, MPI_Count count, MPI_Datatype type)
        : Data(first_of(array), count, type) {
        if (!lies_together(*array)) [[unlikely]]
            take(*array, partitions);
    }

  private:
    void take(const Descriptor& array, int partitions);
};

/// The buffers of a call that may use the data in any order, or needs them without gaps: what stands in for those with gaps.
class StandIns {
  public:
    StandIns() = default;
    StandIns(const StandIns&) = delete;
    ~StandIns() {
        if (all_) [[unlikely]]
            finish();
    }
    /// What the call reads, or may write as well.
    void* read(const Descriptor* array) { return lies_together(*array) ? first_of(array) : stand_in(*array, false); }
    void* written(const Descriptor* array) { return lies_together(*array) ? first_of(array) : stand_in(*array, true); }
    /// The call has made a request (null if it has failed), and the operation goes on behind it, or starts then.
    void belong_to(const int* request) {
        if (all_) [[unlikely]]
            hand_over(*request);
    }

  private:
    void* stand_in(const Descriptor& array, bool written);
    void finish();
    void hand_over(int request);

    struct All;
    All* all_ = nullptr;
};

}  // namespace starling::fortran
