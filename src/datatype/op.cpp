#include "datatype/op.h"

#include <climits>

#include "base/error.h"
#include "base/lock.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/shim_hooks.h"
#include "base/state.h"
#include "datatype/kernels.h"
#include "datatype/recipe.h"

namespace starling::datatype {

namespace {

consteval std::array<Op, 32> make_predefined_ops() {
    std::array<Op, 32> table;
    for (const ReductionOperation operation :
         {ReductionOperation::sum, ReductionOperation::min, ReductionOperation::max, ReductionOperation::prod,
          ReductionOperation::band, ReductionOperation::bor, ReductionOperation::bxor, ReductionOperation::land,
          ReductionOperation::lor, ReductionOperation::lxor, ReductionOperation::minloc, ReductionOperation::maxloc,
          ReductionOperation::replace, ReductionOperation::no_op}) {
        Op& op = table[static_cast<size_t>(operation)];
        op.magic = Op::kMagic;
        op.pool_index = 0x20 + static_cast<uint32_t>(operation);
        op.operation = operation;
        op.commutative = operation != ReductionOperation::replace && operation != ReductionOperation::no_op;
        op.predefined = true;
    }
    return table;
}

STARLING_STATE NoDestroy<Pool<Op>> op_pool_storage;
constinit auto& op_pool = op_pool_storage.value;

bool is_window_only(const Op& op) {
    return op.operation == ReductionOperation::replace || op.operation == ReductionOperation::no_op;
}

// Calls the program's function without the library's lock. If the function takes an int count, long vectors are passed in several calls.
void call_user(const Op& op, const void* in, void* inout, int64_t count, const Datatype& type) {
    const OutsideLibrary outside;
    MPI_Datatype handle = to_handle(&type);
    void* a = const_cast<void*>(in);
    if (op.large_function) {
        if (foreign) return foreign->large_operation(op.large_function, a, inout, &count, handle);
        return op.large_function(a, inout, &count, &handle);
    }
    while (count > 0) {
        int piece = count < INT_MAX ? static_cast<int>(count) : INT_MAX;
        const int64_t step = int64_t{piece} * type.extent;
        count -= piece;
        if (foreign)
            foreign->operation(op.function, a, inout, &piece, handle);
        else
            op.function(a, inout, &piece, &handle);
        a = static_cast<std::byte*>(a) + step;
        inout = static_cast<std::byte*>(inout) + step;
    }
}

}  // namespace

Kernel kernel_for(const Op& op, const Datatype& type) {
    if (type.basic == Basic::pair) {
        if (op.operation != ReductionOperation::minloc && op.operation != ReductionOperation::maxloc) return nullptr;
        return find_pair_kernel(op.operation, type.value, type.index);
    }
    // The standard defines no arithmetic on characters, but all other libraries have it and programs use it. So characters count as signed
    // bytes.
    const Basic basic = type.basic == Basic::character ? Basic::int8 : type.basic;
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        if (const Kernel kernel = avx512::find_kernel(op.operation, basic)) return kernel;
    if (__builtin_cpu_supports("avx2"))
        if (const Kernel kernel = avx2::find_kernel(op.operation, basic)) return kernel;
    return find_kernel(op.operation, basic);
}

STARLING_STATE std::array<Op, 32> predefined_ops = make_predefined_ops();

Op* make_op(MPI_User_function* function, MPI_User_function_c* large_function, bool commutative) {
    Op* op = op_pool.create();
    op->operation = ReductionOperation::user;
    op->commutative = commutative;
    op->references = 1;
    op->function = function;
    op->large_function = large_function;
    return op;
}

Op* op_at(uint32_t pool_index) { return op_pool.at(pool_index); }

void destroy(const Op& op) { op_pool.destroy(const_cast<Op*>(&op)); }

const Datatype* element_of(const Datatype& type) {
    if (type.basic != Basic::none) return &type;
    const Datatype* only = nullptr;
    bool mixed = false;
    for_each_part(*type.recipe, [&](const RecipePart& part) {
        if (mixed || part.count == 0 || part.block == 0 || part.type->size == 0) return;
        const Datatype* here = element_of(*part.type);
        mixed = !here || (only && only->basic != here->basic);
        only = here;
    });
    return mixed ? nullptr : only;
}

bool op_valid_for(const Op& op, const Datatype& type) {
    return op.operation == ReductionOperation::user || (!is_window_only(op) && kernel_for(op, type));
}

bool op_valid_for_window(const Op& op, const Datatype& type) {
    if (!op.predefined) return false;
    if (is_window_only(op)) return true;
    const Datatype* element = element_of(type);
    return element && kernel_for(op, *element);
}

int apply(const Op& op, const void* in, void* inout, int64_t count, const Datatype& type) {
    if (op.operation == ReductionOperation::user) {
        if (count > 0) call_user(op, in, inout, count, type);
        return MPI_SUCCESS;
    }
    return apply_to(op, in, inout, inout, count, type);
}

int apply_to(const Op& op, const void* a, const void* b, void* out, int64_t count, const Datatype& type) {
    if (op.operation == ReductionOperation::user) {
        if (out != b) copy(type, count, b, out);
        return apply(op, a, out, count, type);
    }
    if (is_window_only(op)) {
        const void* kept = op.operation == ReductionOperation::replace ? a : b;
        if (out != kept) copy(type, count, kept, out);
        return MPI_SUCCESS;
    }
    const Kernel kernel = kernel_for(op, type);
    if (!kernel) {
        const char* name = type.name ? type.name : default_name(type);
        return fail(MPI_ERR_OP, "the operation is not defined on elements of %s", *name ? name : "a derived datatype");
    }
    kernel(a, b, out, count);
    return MPI_SUCCESS;
}

}  // namespace starling::datatype
