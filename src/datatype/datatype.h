// Datatypes: the mapping between memory and the bytes of a message (MPI 5.0, chapter 5).
//
// A type's data, in the order of its type map, forms a stream of `size` bytes per element, the packed form. pack(), unpack() and blocks()
// work on any range of that stream, so a message can be transferred in fragments of any size. Finding a position takes time logarithmic in
// the type's description, not linear in the offset.
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

/// A datatype. Predefined ones are in a constant table, others in a pool. All sizes and displacements are in bytes. Constructors
/// (construct.h) guarantee that size, bounds and extents fit in 64 signed bits.
struct Datatype {
    static constexpr uint32_t kMagic = 0x54795065;

    uint32_t magic = 0;
    uint32_t pool_index = 0;  ///< index in the pool; of a predefined type: its ABI value
    int64_t size = 0;         ///< bytes of data in one element, in packed form
    int64_t extent = 0;       ///< distance from one element to the next
    int64_t true_lb = 0;      ///< offset of the first byte of data from the buffer's address
    int64_t true_extent = 0;  ///< distance from the first byte of data to the end of the last
    /// Whether any number of elements is one block of bytes that starts at true_lb (and so extent == size).
    bool contiguous = false;
    bool one_block = false;  ///< whether one element is one block of `size` bytes at true_lb
    bool committed = false;
    bool predefined = false;    ///< whether the type is in the table: never freed, not reference counted
    bool permanent = false;     ///< whether MPI_Type_free fails: predefined, including types without a name (f90, value-index)
    bool marked = false;        ///< whether lb and extent are explicit and outrank the data's bounds in enclosing types
    Basic basic = Basic::none;  ///< element kind for reductions; none for derived types
    uint8_t alignment = 1;      ///< the largest of the elements' alignments
    Basic value = Basic::none, index = Basic::none;  ///< kinds of a pair's members
    uint16_t index_offset = 0;                       ///< offset of a pair's index
    int64_t lb = 0;
    int64_t elements = 0;                    ///< number of basic elements in one element of the type
    mutable uint32_t references = 0;         ///< number of handles, enclosing types and operations in progress
    uint32_t handles = 0;                    ///< handles that the application has
    mutable const Layout* layout = nullptr;  ///< layout; null until needed for a predefined type
    const Recipe* recipe = nullptr;          ///< constructor call of the type; nullptr for named predefined types
    comm::AttributeSet* attributes = nullptr;
    char* name = nullptr;  ///< name set by MPI_Type_set_name; nullptr: the default name
};

extern std::array<Datatype, 256> predefined_types;

/// Returns the type of a handle: nullptr for MPI_DATATYPE_NULL, freed handles and values that are not datatype handles.
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

/// Returns a predefined type that is known to exist, for use inside the library: predefined(MPI_INT).
inline Datatype& predefined(MPI_Datatype handle) { return predefined_types[reinterpret_cast<uintptr_t>(handle) & 0xff]; }

/// Implement MPI_Type_toint and MPI_Type_fromint. A type's integer is its ABI value or, without one, kHandleLimit + pool index. from_int()
/// returns nullptr if there is no such type.
int to_int(const Datatype* type);
Datatype* from_int(int value);

void destroy(const Datatype& type);

/// Keeps a type alive while an operation uses it, even if the application frees it meanwhile.
inline void retain(const Datatype& type) {
    if (!type.predefined) ++type.references;
}
inline void release(const Datatype& type) {
    if (!type.predefined && --type.references == 0) destroy(type);
}

/// Returns the bytes of `count` elements in packed form. Entry points check with packed_size_fits() first.
inline uint64_t packed_size(const Datatype& type, int64_t count) {
    return static_cast<uint64_t>(type.size) * static_cast<uint64_t>(count);
}
inline bool packed_size_fits(const Datatype& type, int64_t count) {
    int64_t bytes;
    return !__builtin_mul_overflow(type.size, count, &bytes);
}

/// Returns the bytes of memory that `count` elements span, from the first byte of data to the end of the last. The first is at `buffer +
/// span_offset(type, count)`; for a temporary of span() bytes, pass `temporary - span_offset()` as the buffer.
uint64_t span(const Datatype& type, int64_t count);
int64_t span_offset(const Datatype& type, int64_t count);

/// Returns whether `count` elements are one block of packed_size() bytes at block_address().
inline bool is_block(const Datatype& type, int64_t count) { return type.contiguous || (count == 1 && type.one_block); }
inline void* block_address(const Datatype& type, const void* buffer) {
    return const_cast<std::byte*>(static_cast<const std::byte*>(buffer)) + type.true_lb;
}

uint64_t pack_scattered(const Datatype&, int64_t count, const void* buffer, uint64_t from, void* out, uint64_t max);
uint64_t unpack_scattered(const Datatype&, int64_t count, void* buffer, uint64_t from, const void* in, uint64_t max);

/// Copies bytes [from, from + max) of the packed stream of `count` elements at `buffer` to `out`; fewer at the stream's end. Returns the
/// number of bytes copied. `from` must not be beyond the end. The type need not be committed. `buffer` may be MPI_BOTTOM if the type's
/// displacements are addresses.
inline uint64_t pack(const Datatype& type, int64_t count, const void* buffer, uint64_t from, void* out, uint64_t max) {
    if (!is_block(type, count)) return pack_scattered(type, count, buffer, from, out, max);
    const uint64_t rest = packed_size(type, count) - from;
    const uint64_t bytes = rest < max ? rest : max;
    if (bytes) copy_by_call(out, static_cast<std::byte*>(block_address(type, buffer)) + from, bytes);
    return bytes;
}

/// Packs like pack() above, into shared memory that another process reads next. `path` selects the kind of copy that is fastest for that
/// reader.
inline uint64_t pack(CopyPath& path, const Datatype& type, int64_t count, const void* buffer, uint64_t from, void* out,
                     uint64_t max, CopyPath::CopyDestination into = CopyPath::CopyDestination::again) {
    if (max < CopyPath::kWayMatters || !is_block(type, count)) [[likely]]
        return pack(type, count, buffer, from, out, max);
    const uint64_t rest = packed_size(type, count) - from;
    const uint64_t bytes = rest < max ? rest : max;
    path.copy(out, static_cast<std::byte*>(block_address(type, buffer)) + from, bytes, into);
    return bytes;
}

/// The reverse of pack(): stores `max` bytes of the stream, beginning at stream position `from`.
inline uint64_t unpack(const Datatype& type, int64_t count, void* buffer, uint64_t from, const void* in, uint64_t max) {
    if (!is_block(type, count)) return unpack_scattered(type, count, buffer, from, in, max);
    const uint64_t rest = packed_size(type, count) - from;
    const uint64_t bytes = rest < max ? rest : max;
    if (bytes) copy_by_call(static_cast<std::byte*>(block_address(type, buffer)) + from, in, bytes);
    return bytes;
}

/// Variants of pack() and unpack() for all `bytes` of a message, optimized for short messages.
[[gnu::always_inline]] inline void pack_short(CopyPath& path, const Datatype& type, int64_t count, const void* buffer,
                                              void* out, uint64_t bytes, CopyPath::CopyDestination into) {
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

/// Lists the blocks of memory that hold the stream from position `from` on, in stream order, adjacent ones merged; at most `max` of them.
/// Returns the number of blocks written: 0 only at the stream's end.
int blocks(const Datatype& type, int64_t count, const void* buffer, uint64_t from, iovec* out, int max);

/// Copies `count` elements between two buffers of the same type; gaps stay untouched. The buffers must not overlap.
void copy(const Datatype& type, int64_t count, const void* source, void* target);

/// Copies data between buffers of different types, as a message of a process to itself does. Returns MPI_ERR_TRUNCATE, without copying, if
/// the data is longer than the target.
int copy(const Datatype& source_type, int64_t source_count, const void* source, const Datatype& target_type,
         int64_t target_count, void* target);

/// Returns the number of whole elements in `bytes` received, for MPI_Get_count; MPI_UNDEFINED if there is a remainder.
int64_t get_count(uint64_t bytes, const Datatype& type);
/// Returns the number of basic elements in `bytes` received, for MPI_Get_elements; MPI_UNDEFINED if the last one is incomplete.
int64_t get_elements(uint64_t bytes, const Datatype& type);
/// Returns how many bytes the first `elements` basic elements of data of this type take when packed, for MPI_Status_set_elements.
uint64_t bytes_of_elements(int64_t elements, const Datatype& type);

/// Returns the name of a type to which MPI_Type_set_name gave none: its constant's name, or "".
const char* default_name(const Datatype& type);

}  // namespace starling::datatype
