// Conversions of arguments for the generated entry points of a shim (a library with the binary interface of another MPI). An object of
// these classes converts an argument before the call, and the values that the library wrote after it. In names, "In" marks values on their
// way to the library, "Out" and "Made" values on their way to the program.
//
// The differences between the interfaces are in src/compat/<interface>/abi.h: types, handles, statuses.
#pragma once

#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <type_traits>

#include "base/shim_hooks.h"

#include COMPAT_ABI

namespace starling::compat {

/// The program's type of a handle, in C or in Fortran; if both are the same type, one conversion serves both.
template <class Handle>
using There = typename abi::Handles<Handle>::There;
template <class Handle, class Theirs>
Handle in(Theirs handle) {
    return abi::Handles<Handle>::in(handle);
}
template <class Handle>
There<Handle> out(Handle handle) {
    return abi::Handles<Handle>::out(handle);
}
/// Stores a handle in a variable of the program, in either language.
template <class Handle>
void put(Handle handle, There<Handle>* place) {
    *place = out(handle);
}
template <class Handle>
requires(!std::is_same_v<There<Handle>, int>) void put(Handle handle, int* place) {
    *place = abi::Handles<Handle>::number(handle);
}

/// An array of `count` elements, which allocates memory only if it has more than kFew.
template <class T, size_t kFew = 16>
class Few {
  public:
    explicit Few(size_t count) : many_(count > kFew ? std::make_unique<T[]>(count) : nullptr) {}
    T* data() { return many_ ? many_.get() : few_; }
    T& operator[](size_t i) { return data()[i]; }

  private:
    std::unique_ptr<T[]> many_;
    T few_[kFew];
};

/// Receives the handle that a call creates, and converts it for the program.
template <class Handle, class Place>
class Made {
  public:
    explicit Made(Place* place) : place_(place) {}
    Made(const Made&) = delete;
    ~Made() {
        if (place_) put(made_, place_);
    }
    operator Handle*() { return place_ ? &made_ : nullptr; }

  private:
    Place* const place_;
    Handle made_ = abi::Handles<Handle>::null();
};
template <class Handle, class Place>
Made<Handle, Place> made(Place* place) {
    return Made<Handle, Place>(place);
}

/// Converts a handle that the call reads and writes, in both directions.
template <class Handle, class Place>
class Changed {
  public:
    explicit Changed(Place* place) : place_(place), handle_(place ? in<Handle>(*place) : Handle()) {}
    Changed(const Changed&) = delete;
    ~Changed() {
        if (place_) put(handle_, place_);
    }
    operator Handle*() { return place_ ? &handle_ : nullptr; }

  private:
    Place* const place_;
    Handle handle_;
};
template <class Handle, class Place>
Changed<Handle, Place> changed(Place* place) {
    return Changed<Handle, Place>(place);
}

/// Converts an array of handles that the call reads.
template <class Handle>
class HandleList {
  public:
    template <class Place>
    HandleList(const Place* from, int count) : given_(from != nullptr), list_(static_cast<size_t>(std::max(count, 0))) {
        for (int i = 0; from && i < count; ++i) list_[static_cast<size_t>(i)] = in<Handle>(from[i]);
    }
    HandleList(const HandleList&) = delete;
    operator const Handle*() { return given_ ? list_.data() : nullptr; }

  protected:
    const bool given_;
    Few<Handle> list_;
};
template <class Handle, class Place>
HandleList<Handle> list(const Place* from, int count) {
    return HandleList<Handle>(from, count);
}

/// Converts an array of handles that the call reads and may replace.
template <class Handle, class Place>
class ChangedList : HandleList<Handle> {
  public:
    ChangedList(Place* place, int count) : HandleList<Handle>(place, count), place_(place), count_(count) {}
    ~ChangedList() {
        for (int i = 0; place_ && i < count_; ++i) put(this->list_[static_cast<size_t>(i)], &place_[i]);
    }
    operator Handle*() { return this->given_ ? this->list_.data() : nullptr; }

  private:
    Place* const place_;
    const int count_;
};
template <class Handle, class Place>
ChangedList<Handle, Place> changed_list(Place* place, int count) {
    return ChangedList<Handle, Place>(place, count);
}

/// Converts numbers in place after the call has written them into the program's memory.
template <int (*kOut)(int)>
class NumbersMade {
  public:
    NumbersMade(int* place, int count) : place_(place), count_(count) {}
    NumbersMade(const NumbersMade&) = delete;
    ~NumbersMade() {
        for (int i = 0; place_ && i < count_; ++i) place_[i] = kOut(place_[i]);
    }
    operator int*() { return place_; }

  private:
    int* const place_;
    const int count_;
};

/// error_in() converts an error class. Codes that the program added lie above all classes, and only their distance from the last class is
/// kept.
inline int error_in(int code) {
    return code >= abi::kLastCode ? code - abi::kLastCode + MPI_ERR_LASTCODE : abi::error_in(code);
}
inline int error_out(int code) {
    return code >= MPI_ERR_LASTCODE ? code - MPI_ERR_LASTCODE + abi::kLastCode : abi::error_out(code);
}
inline NumbersMade<error_out> errors_made(int* place, int count) { return {place, count}; }

inline int rank_in(int rank) { return abi::rank_in(rank); }
inline int tag_in(int tag) { return abi::tag_in(tag); }
inline NumbersMade<abi::rank_out> ranks_made(int* place, int count) { return {place, count}; }
inline NumbersMade<abi::combiner_out> combiner_made(int* place) { return {place, 1}; }
inline NumbersMade<abi::tag_out> tag_made(int* place) { return {place, 1}; }
inline NumbersMade<abi::thread_level_out> thread_level_made(int* place) { return {place, 1}; }
inline NumbersMade<abi::comparison_out> comparison_made(int* place) { return {place, 1}; }
inline NumbersMade<abi::topology_out> topology_made(int* place) { return {place, 1}; }
inline NumbersMade<abi::verbosity_out> verbosity_made(int* place) { return {place, 1}; }
inline NumbersMade<abi::bind_out> bind_made(int* place) { return {place, 1}; }
inline NumbersMade<abi::scope_out> scope_made(int* place) { return {place, 1}; }
inline NumbersMade<abi::pvar_class_out> pvar_class_made(int* place) { return {place, 1}; }
inline int thread_level_in(int level) { return abi::thread_level_in(level); }
inline int lock_type_in(int type) { return abi::lock_type_in(type); }
inline int split_type_in(int type) { return abi::split_type_in(type); }
inline int order_in(int order) { return abi::order_in(order); }
inline int typeclass_in(int typeclass) { return abi::typeclass_in(typeclass); }
inline int whence_in(int whence) { return abi::whence_in(whence); }
/// Converts a displacement of a file view, which may be MPI_DISPLACEMENT_CURRENT.
inline MPI_Offset displacement_in(MPI_Offset displacement) {
    return displacement < 0 && displacement >= INT_MIN ? abi::displacement_in(static_cast<int>(displacement)) : displacement;
}
inline int pvar_class_in(int kind) { return abi::pvar_class_in(kind); }
inline int keyval_in(int keyval) { return abi::keyval_in(keyval); }

/// Converts a set of bits, each of which is a constant of the interface.
template <int (*kOf)(int)>
int bits(int set) {
    int all = 0;
    for (unsigned bit = 1; bit <= 1u << 30; bit <<= 1)
        if (static_cast<unsigned>(set) & bit) all |= kOf(static_cast<int>(bit));
    return all;
}
inline int assertions_in(int set) { return bits<abi::assertion_in>(set); }
inline int file_modes_in(int set) { return bits<abi::file_mode_in>(set); }
inline int file_modes_out(int set) { return bits<abi::file_mode_out>(set); }
inline NumbersMade<file_modes_out> file_modes_made(int* place) { return {place, 1}; }

class KeyvalChanged {
  public:
    explicit KeyvalChanged(int* place) : place_(place), keyval_(place ? abi::keyval_in(*place) : 0) {}
    KeyvalChanged(const KeyvalChanged&) = delete;
    ~KeyvalChanged() {
        if (place_) *place_ = abi::keyval_out(keyval_);
    }
    operator int*() { return place_ ? &keyval_ : nullptr; }

  private:
    int* const place_;
    int keyval_;
};
inline KeyvalChanged keyval_changed(int* place) { return KeyvalChanged(place); }

/// Converts an array of numbers that the call reads.
template <int (*kIn)(int)>
class NumbersIn {
  public:
    NumbersIn(const int* from, int count) : given_(from != nullptr), list_(static_cast<size_t>(std::max(count, 0))) {
        for (int i = 0; from && i < count; ++i) list_[static_cast<size_t>(i)] = kIn(from[i]);
    }
    NumbersIn(const NumbersIn&) = delete;
    operator const int*() { return given_ ? list_.data() : nullptr; }

  private:
    const bool given_;
    Few<int> list_;
};
inline NumbersIn<rank_in> rank_list(const int* from, int count) { return {from, count}; }
inline NumbersIn<abi::distribution_in> distributions(const int* from, int count) { return {from, count}; }
inline NumbersIn<abi::distribution_argument_in> distribution_arguments(const int* from, int count) { return {from, count}; }

template <class Pointer>
Pointer* buffer_in(Pointer* buffer) {
    const auto word = reinterpret_cast<intptr_t>(buffer);
    if (word == abi::kInPlace) [[unlikely]]
        return reinterpret_cast<Pointer*>(MPI_IN_PLACE);
    if (word == abi::kBufferAutomatic) [[unlikely]]
        return reinterpret_cast<Pointer*>(MPI_BUFFER_AUTOMATIC);
    return buffer;
}
/// Address of a pointer variable that the call sets to a buffer.
class BufferMade {
  public:
    explicit BufferMade(void* place) : place_(place) {}
    BufferMade(const BufferMade&) = delete;
    ~BufferMade() {
        void* buffer = nullptr;
        if (place_) std::memcpy(&buffer, place_, sizeof buffer);
        if (buffer != MPI_BUFFER_AUTOMATIC) return;
        const intptr_t there = abi::kBufferAutomatic;
        std::memcpy(place_, &there, sizeof there);
    }
    operator void*() { return place_; }

  private:
    void* const place_;
};
inline BufferMade buffer_made(void* place) { return BufferMade(place); }
template <class Pointer>
Pointer* weights_in(Pointer* weights) {
    const auto word = reinterpret_cast<intptr_t>(weights);
    if (word == abi::kUnweighted) return reinterpret_cast<Pointer*>(MPI_UNWEIGHTED);
    return word == abi::kWeightsEmpty ? reinterpret_cast<Pointer*>(MPI_WEIGHTS_EMPTY) : weights;
}
inline MPI_T_pvar_handle pvar_in(MPI_T_pvar_handle handle) {
    return reinterpret_cast<intptr_t>(handle) == abi::kAllPvars ? MPI_T_PVAR_ALL_HANDLES : handle;
}

/// The non-public fields of a status, in which the library stores the length and the cancelled flag (message/status.h).
struct StatusRest {
    uint64_t bytes;
    int cancelled;
};
inline MPI_Status make_status(int source, int tag, int error, StatusRest rest) {
    MPI_Status status{rank_in(source), tag_in(tag), error_in(error), {}};
    std::memcpy(status.MPI_internal, &rest.bytes, sizeof rest.bytes);
    status.MPI_internal[2] = rest.cancelled;
    return status;
}
inline StatusRest rest_of(const MPI_Status& status) {
    StatusRest rest{0, status.MPI_internal[2]};
    std::memcpy(&rest.bytes, status.MPI_internal, sizeof rest.bytes);
    return rest;
}

}  // namespace starling::compat

#include COMPAT_STATUS

namespace starling::compat {

/// Receives statuses, or only parts of them, that the call may write, and converts them for the program.
class StatusesMade {
  public:
    StatusesMade(abi::Status* place, int count)
        : place_(reinterpret_cast<intptr_t>(place) == abi::kStatusIgnore ? nullptr : place),
          count_(count),
          list_(static_cast<size_t>(place_ ? std::max(count, 0) : 0)) {
        for (int i = 0; place_ && i < count_; ++i) list_[static_cast<size_t>(i)] = abi::status_in(place_[i]);
    }
    StatusesMade(const StatusesMade&) = delete;
    ~StatusesMade() {
        for (int i = 0; place_ && i < count_; ++i) abi::status_out(list_[static_cast<size_t>(i)], place_[i]);
    }
    operator MPI_Status*() { return place_ ? list_.data() : MPI_STATUS_IGNORE; }

  private:
    abi::Status* const place_;
    const int count_;
    Few<MPI_Status, 4> list_;
};
inline StatusesMade statuses_made(abi::Status* place, int count) { return {place, count}; }

/// Converts a status that the call reads.
class StatusRead {
  public:
    explicit StatusRead(const abi::Status* from)
        : ignored_(reinterpret_cast<intptr_t>(from) == abi::kStatusIgnore || !from),
          status_(ignored_ ? MPI_Status{} : abi::status_in(*from)) {}
    StatusRead(const StatusRead&) = delete;
    operator const MPI_Status*() const { return ignored_ ? MPI_STATUS_IGNORE : &status_; }

  private:
    const bool ignored_;
    const MPI_Status status_;
};
inline StatusRead status_in(const abi::Status* from) { return StatusRead(from); }

/// Receives a text that the call writes. The library's texts may be longer than the program's interface allows, so the text is cut.
template <int kHere, int kThere>
class TextMade {
  public:
    TextMade(char* place, int* length) : place_(place), length_(length) {}
    TextMade(const TextMade&) = delete;
    ~TextMade() {
        if (!place_) return;
        const size_t length = std::min<size_t>(std::strlen(text_), kThere - 1);
        std::memcpy(place_, text_, length);
        place_[length] = 0;
        if (length_) *length_ = std::min(*length_, kThere - 1);
    }
    operator char*() { return place_ ? text_ : nullptr; }

  private:
    char* const place_;
    int* const length_;
    char text_[kHere] = "";
};
template <int kHere, int kThere>
TextMade<kHere, kThere> text_made(char* place, int* length) {
    return TextMade<kHere, kThere>(place, length);
}

/// Returns the number of processes that a collective call sends to (or receives from, if not `outgoing`): the remote group's size in an
/// inter-communicator.
inline int participants(MPI_Comm comm, bool) {
    int is_inter = 0, size = 0;
    if (library.Comm_test_inter(comm, &is_inter) == MPI_SUCCESS)
        is_inter ? library.Comm_remote_size(comm, &size) : library.Comm_size(comm, &size);
    return size;
}
int neighbours(MPI_Comm comm, bool outgoing);

/// Functions with which the library calls the program's callbacks.
extern const Foreign callers;

}  // namespace starling::compat
