// Datatypes: how bytes in memory become the bytes of a message (MPI 5.0, chapter 5).
//
// A type's data, in the order of its type map, forms a stream of `size` bytes per element: the packed form.
// pack(), unpack() and blocks() work on any range of that stream, so a message can be moved in pieces of
// any size, and finding the place takes time logarithmic in the type's description, not linear in the
// offset.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/copy.h"
#include "base/handle.h"
#include "datatype/basic.h"
#include "mpi.h"

namespace starling::comm {
class AttributeSet;
}

namespace starling::datatype {

struct Layout;
struct Recipe;

/// A datatype. Predefined ones live in a constant table, others in a pool. All sizes and displacements are
/// bytes. Constructors (construct.h) guarantee that size, bounds and extents fit in 64 signed bits.
struct Datatype {
    static constexpr uint32_t kMagic = 0x54795065;

    uint32_t magic = 0;
    uint32_t pool_index = 0;  ///< of a predefined type: its ABI value
    int64_t size = 0;         ///< bytes of data in one element; the packed size
    int64_t extent = 0;       ///< from one element to the next
    int64_t true_lb = 0;      ///< first byte of data, relative to the buffer's address
    int64_t true_extent = 0;  ///< from the first to behind the last byte of data
    /// Any number of elements is one block of bytes that starts at true_lb (and so extent == size).
    bool contiguous = false;
    bool one_block = false;  ///< one element is one block of `size` bytes at true_lb
    bool committed = false;
    bool predefined = false;    ///< in the table: never freed, not counted
    bool permanent = false;     ///< predefined, or predefined without a name (f90, value-index): MPI_Type_free refuses
    bool marked = false;        ///< lb and extent were set explicitly and outrank the data's bounds in enclosing types
    Basic basic = Basic::none;  ///< what reductions see; none for derived types
    uint8_t alignment = 1;      ///< the largest of the elements'
    Basic value = Basic::none, index = Basic::none;  ///< of a pair
    uint16_t index_offset = 0;                       ///< of a pair: where its index is
    int64_t lb = 0;
    int64_t elements = 0;                    ///< basic elements in one element
    mutable uint32_t references = 0;         ///< handles, enclosing types and operations in flight
    uint32_t handles = 0;                    ///< handles the application holds
    mutable const Layout* layout = nullptr;  ///< of predefined types: made when first needed
    const Recipe* recipe = nullptr;          ///< how it was made; nullptr for named predefined types
    comm::AttributeSet* attributes = nullptr;
    char* name = nullptr;  ///< set by MPI_Type_set_name; nullptr: the default
};

extern std::array<Datatype, 256> predefined_types;

/// The type behind a handle: nullptr for MPI_DATATYPE_NULL, freed handles and what is no datatype handle.
inline Datatype* from_handle(MPI_Datatype handle) {
    const uintptr_t value = reinterpret_cast<uintptr_t>(handle);
    Datatype* type = reinterpret_cast<Datatype*>(handle);
    if (value < kHandleLimit) {
        if (value - 0x200 >= 0x100) return nullptr;
        type = &predefined_types[value - 0x200];
    } else if (value % alignof(Datatype) != 0) {
        return nullptr;
    }
    return type->magic == Datatype::kMagic ? type : nullptr;
}

inline MPI_Datatype to_handle(const Datatype* type) {
    if (!type) return MPI_DATATYPE_NULL;
    if (type->predefined) return reinterpret_cast<MPI_Datatype>(static_cast<uintptr_t>(type->pool_index));
    return reinterpret_cast<MPI_Datatype>(const_cast<Datatype*>(type));
}

/// A predefined type known to exist, for use inside the library: predefined(MPI_INT).
inline Datatype& predefined(MPI_Datatype handle) { return predefined_types[reinterpret_cast<uintptr_t>(handle) & 0xff]; }

/// MPI_Type_toint and _fromint: the ABI value, or kHandleLimit + pool index. from_int gives nullptr if there is
/// none.
int to_int(const Datatype* type);
Datatype* from_int(int value);

void destroy(const Datatype& type);

/// Keeps a type alive while an operation uses it, whatever the application frees meanwhile.
inline void retain(const Datatype& type) {
    if (!type.predefined) ++type.references;
}
inline void release(const Datatype& type) {
    if (!type.predefined && --type.references == 0) destroy(type);
}

/// Bytes of `count` elements in packed form. Entry points check with packed_size_fits() first.
inline uint64_t packed_size(const Datatype& type, int64_t count) {
    return static_cast<uint64_t>(type.size) * static_cast<uint64_t>(count);
}
inline bool packed_size_fits(const Datatype& type, int64_t count) {
    int64_t bytes;
    return !__builtin_mul_overflow(type.size, count, &bytes);
}

/// Bytes of memory that `count` elements span, from the first byte of data to behind the last. The lowest
/// is at `buffer + span_offset(type, count)`; a temporary of span() bytes stands for the buffer at
/// `temporary - span_offset()`.
uint64_t span(const Datatype& type, int64_t count);
int64_t span_offset(const Datatype& type, int64_t count);

/// True if `count` elements are one block of packed_size() bytes at block_address().
inline bool is_block(const Datatype& type, int64_t count) { return type.contiguous || (count == 1 && type.one_block); }
inline void* block_address(const Datatype& type, const void* buffer) {
    return const_cast<std::byte*>(static_cast<const std::byte*>(buffer)) + type.true_lb;
}

uint64_t pack_scattered(const Datatype&, int64_t count, const void* buffer, uint64_t from, void* out, uint64_t max);
uint64_t unpack_scattered(const Datatype&, int64_t count, void* buffer, uint64_t from, const void* in, uint64_t max);

/// Copies bytes [from, from + max) of the packed stream of `count` elements at `buffer` to `out`; less at
/// the stream's end. Gives the number of bytes copied. `from` must not be beyond the end. The type need not
/// be committed. Buffer may be MPI_BOTTOM where the type's displacements are addresses.
inline uint64_t pack(const Datatype& type, int64_t count, const void* buffer, uint64_t from, void* out, uint64_t max) {
    if (!is_block(type, count)) return pack_scattered(type, count, buffer, from, out, max);
    const uint64_t rest = packed_size(type, count) - from;
    const uint64_t bytes = rest < max ? rest : max;
    if (bytes) copy_by_call(out, static_cast<std::byte*>(block_address(type, buffer)) + from, bytes);
    return bytes;
}

/// pack() into memory that others read next, who are at the end of `path`.
inline uint64_t pack(CopyPath& path, const Datatype& type, int64_t count, const void* buffer, uint64_t from, void* out,
                     uint64_t max, CopyPath::Into into = CopyPath::Into::again) {
    if (max < CopyPath::kWayMatters || !is_block(type, count)) [[likely]]
        return pack(type, count, buffer, from, out, max);
    const uint64_t rest = packed_size(type, count) - from;
    const uint64_t bytes = rest < max ? rest : max;
    path.copy(out, static_cast<std::byte*>(block_address(type, buffer)) + from, bytes, into);
    return bytes;
}

/// The reverse of pack(): stores `max` bytes of the stream that begin at stream position `from`.
inline uint64_t unpack(const Datatype& type, int64_t count, void* buffer, uint64_t from, const void* in, uint64_t max) {
    if (!is_block(type, count)) return unpack_scattered(type, count, buffer, from, in, max);
    const uint64_t rest = packed_size(type, count) - from;
    const uint64_t bytes = rest < max ? rest : max;
    if (bytes) copy_by_call(static_cast<std::byte*>(block_address(type, buffer)) + from, in, bytes);
    return bytes;
}

/// pack() and unpack() of all `bytes`, which are most often few: those of a short message.
[[gnu::always_inline]] inline void pack_short(CopyPath& path, const Datatype& type, int64_t count, const void* buffer,
                                              void* out, uint64_t bytes, CopyPath::Into into) {
    if (bytes <= kFewBytes && type.contiguous) [[likely]]
        return copy_few(out, block_address(type, buffer), bytes);
    pack(path, type, count, buffer, 0, out, bytes, into);
}
[[gnu::always_inline]] inline void unpack_short(const Datatype& type, int64_t count, void* buffer, const void* in,
                                                uint64_t bytes) {
    if (bytes <= kFewBytes && type.contiguous) [[likely]]
        return copy_few(block_address(type, buffer), in, bytes);
    unpack(type, count, buffer, 0, in, bytes);
}

/// Lists the blocks of memory that hold the stream from position `from` on, in stream order, adjoining ones
/// merged; at most `max` of them. Gives how many were written: 0 only at the stream's end.
int blocks(const Datatype& type, int64_t count, const void* buffer, uint64_t from, iovec* out, int max);

/// Copies `count` elements between two buffers of the same type; gaps stay untouched. Must not overlap.
void copy(const Datatype& type, int64_t count, const void* source, void* target);

/// What a message from a process to itself does. MPI_ERR_TRUNCATE, and nothing copied, if the data is
/// longer than the target takes.
int copy(const Datatype& source_type, int64_t source_count, const void* source, const Datatype& target_type,
         int64_t target_count, void* target);

/// MPI_Get_count: whole elements in `bytes` received; MPI_UNDEFINED if there is a rest.
int64_t get_count(uint64_t bytes, const Datatype& type);
/// MPI_Get_elements: basic elements in `bytes` received; MPI_UNDEFINED if the last one is incomplete.
int64_t get_elements(uint64_t bytes, const Datatype& type);
/// The reverse: packed bytes of the first `elements` basic elements (MPI_Status_set_elements).
uint64_t bytes_of_elements(int64_t elements, const Datatype& type);

/// The name a type has without MPI_Type_set_name: its constant's, or "".
const char* default_name(const Datatype& type);

}  // namespace starling::datatype
