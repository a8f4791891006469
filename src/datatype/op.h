// Reduction operations (MPI 5.0 section 6.9): predefined ones on basic elements, and the application's own.
#pragma once

#include <array>
#include <cstdint>

#include "base/handle.h"
#include "datatype/datatype.h"
#include "mpi.h"

namespace starling::datatype {

/// The operation to compute. The values are those of the handles minus 0x20.
enum class ReductionOperation : uint8_t {
    null = 0x00,
    sum = 0x01,
    min = 0x02,
    max = 0x03,
    prod = 0x04,
    band = 0x08,
    bor = 0x09,
    bxor = 0x0a,
    land = 0x10,
    lor = 0x11,
    lxor = 0x12,
    minloc = 0x18,
    maxloc = 0x19,
    replace = 0x1c,
    no_op = 0x1d,
    user = 0x20,
};

struct Op {
    static constexpr uint32_t kMagic = 0x4f70634f;

    uint32_t magic = 0;
    uint32_t pool_index = 0;  ///< index in the pool; of a predefined operation: its ABI value
    ReductionOperation operation = ReductionOperation::null;
    bool commutative = true;
    bool predefined = false;
    bool freed = false;                     ///< whether the application has freed it; operations in progress may still use it
    mutable uint32_t references = 0;        ///< number of references: the handle and operations in progress
    MPI_User_function* function = nullptr;  ///< the argument of MPI_Op_create; else null
    MPI_User_function_c* large_function = nullptr;  ///< the argument of MPI_Op_create_c; else null
};

extern std::array<Op, 32> predefined_ops;

/// Returns the operation of a handle: nullptr for MPI_OP_NULL, freed handles and values that are not operation handles.
inline Op* from_handle(MPI_Op handle) {
    const uintptr_t value = reinterpret_cast<uintptr_t>(handle);
    Op* op = reinterpret_cast<Op*>(handle);
    if (value < kHandleLimit) {
        if (value - 0x20 >= 0x20) return nullptr;
        op = &predefined_ops[value - 0x20];
    } else if (value % alignof(Op) != 0) {
        return nullptr;
    }
    return op->magic == Op::kMagic ? op : nullptr;
}

inline MPI_Op to_handle(const Op* op) {
    if (!op) return MPI_OP_NULL;
    if (op->predefined) return reinterpret_cast<MPI_Op>(static_cast<uintptr_t>(op->pool_index));
    return reinterpret_cast<MPI_Op>(const_cast<Op*>(op));
}

/// Returns a predefined operation, for use inside the library: predefined(MPI_SUM).
inline Op& predefined(MPI_Op handle) { return predefined_ops[reinterpret_cast<uintptr_t>(handle) & 0x1f]; }

/// Creates an operation with one reference from a function of the application. One of the two pointers is null.
Op* make_op(MPI_User_function* function, MPI_User_function_c* large_function, bool commutative);

Op* op_at(uint32_t pool_index);

void destroy(const Op& op);

/// Keeps an operation alive while a collective uses it, even if the application frees it meanwhile.
inline void retain(const Op& op) {
    if (!op.predefined) ++op.references;
}
inline void release(const Op& op) {
    if (!op.predefined && --op.references == 0) destroy(op);
}

/// Returns whether a reduction may combine the operation with the type. User-defined operations take any type. Predefined ones take the
/// predefined types that the standard lists, and also characters, which they treat as signed bytes. False for MPI_REPLACE and MPI_NO_OP,
/// which are for windows only.
bool op_valid_for(const Op& op, const Datatype& type);
/// Returns whether MPI_Accumulate and similar calls may combine the operation with the type: predefined operations only, including
/// MPI_REPLACE and MPI_NO_OP. `type` may be derived from one kind of basic element.
bool op_valid_for_window(const Op& op, const Datatype& type);

/// Returns the basic element of a type if all are of one kind, else null; null for a type without data.
const Datatype* element_of(const Datatype& type);

/// Computes inout[i] = in[i] op inout[i]. Returns MPI_ERR_OP with failure_text() if the operation is not valid for the type. Calls a
/// user-defined function outside the library's lock (base/lock.h), so the caller must keep its objects alive. The memory passed to such a
/// function must be writable.
int apply(const Op& op, const void* in, void* inout, int64_t count, const Datatype& type);

/// Computes out[i] = a[i] op b[i]. For predefined operations `out` may be `a` or `b`; otherwise it must not overlap them.
int apply_to(const Op& op, const void* a, const void* b, void* out, int64_t count, const Datatype& type);

}  // namespace starling::datatype
