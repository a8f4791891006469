#include "datatype/array_types.h"

#include "base/error.h"
#include "datatype/construct.h"

namespace starling::datatype {

namespace {

long long number(int64_t value) { return value; }

int too_large() { return fail(MPI_ERR_VALUE_TOO_LARGE, "the array's size does not fit in 64 bits"); }

int check_order(int64_t ndims, int64_t order) {
    if (ndims < 1) return fail(MPI_ERR_ARG, "the number of dimensions is %lld; it must be at least 1", number(ndims));
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
        return fail(MPI_ERR_ARG, "order %lld is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", number(order));
    return MPI_SUCCESS;
}

/// Builds the array's type dimension by dimension, beginning with the one that varies fastest. Holds a reference to the type of the
/// dimensions added so far ("intermediate type").
class ArrayBuilder {
  public:
    explicit ArrayBuilder(Datatype& old) : made_(TypeRef::to(old)), stride_(old.extent) {}

    /// Adds a dimension of `size`: `count` adjacent copies of the intermediate type, from `start` on.
    int add_range(int64_t size, int64_t start, int64_t count) { return add_blocks(size, start, 1, count, count, 0); }

    /// Adds a dimension of `size`: `blocks` blocks of `length` copies, `distance` apart, from `start` on, followed by one block of `rest`.
    int add_blocks(int64_t size, int64_t start, int64_t blocks, int64_t length, int64_t distance, int64_t rest) {
        int64_t far, step, unused;
        if (__builtin_mul_overflow(distance, stride_, &step) || __builtin_mul_overflow(size, stride_, &unused))
            return too_large();
        TypeRef block, run, tail;
        int error = replicate(length, stride_, *made_, block);
        if (!error) error = replicate(blocks, step, *block, run);
        if (!error) error = replicate(rest, stride_, *made_, tail);
        if (error) return error;
        start *= stride_;
        if (__builtin_mul_overflow(blocks, step, &far) || __builtin_add_overflow(far, start, &far)) return too_large();
        Datatype* both = nullptr;
        error = make(MPI_COMBINER_STRUCT, true, {2, 1, 1, start, rest ? far : 0}, {run.get(), tail.get()}, &both);
        if (error) return error;
        made_ = TypeRef(both);
        stride_ = unused;
        return MPI_SUCCESS;
    }

    /// Completes the type. Its extent becomes that of the whole array, even if the selected elements span only a part of the array.
    int finish(Recipe& recipe) {
        Datatype* whole = nullptr;
        if (const int error = make(MPI_COMBINER_RESIZED, true, {0, stride_}, {made_.get()}, &whole)) return error;
        recipe.equivalent = whole;
        return MPI_SUCCESS;
    }

  private:
    static int replicate(int64_t count, int64_t stride, Datatype& type, TypeRef& out) {
        Datatype* made = nullptr;
        const int error = make(MPI_COMBINER_HVECTOR, true, {count, 1, stride}, {&type}, &made);
        if (!error) out = TypeRef(made);
        return error;
    }

    TypeRef made_;
    int64_t stride_;
};

/// One dimension of a distributed array: `size` elements, of which the process at `place` of `processes` has a part.
struct ArrayDimension {
    int64_t size, distribution, argument, processes, place;
};

int add_dimension(ArrayBuilder& builder, const ArrayDimension& d) {
    if (d.distribution == MPI_DISTRIBUTE_NONE) return builder.add_range(d.size, 0, d.size);
    if (d.distribution == MPI_DISTRIBUTE_BLOCK) {
        int64_t block = d.argument;
        if (block == MPI_DISTRIBUTE_DFLT_DARG) block = d.size / d.processes + (d.size % d.processes != 0);
        if (block < (d.size + d.processes - 1) / d.processes)
            return fail(MPI_ERR_ARG, "blocks of %lld elements are too small to distribute %lld elements over %lld processes",
                        number(block), number(d.size), number(d.processes));
        const int64_t begin = d.place > d.size / block ? d.size : d.place * block;
        const int64_t left = begin < d.size ? d.size - begin : 0;
        return builder.add_range(d.size, left ? begin : 0, left < block ? left : block);
    }
    const int64_t block = d.argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : d.argument;
    int64_t period, begin;
    if (__builtin_mul_overflow(block, d.processes, &period) || __builtin_mul_overflow(block, d.place, &begin))
        return too_large();
    if (begin >= d.size) return builder.add_range(d.size, 0, 0);
    const int64_t mine = d.size - begin;
    const int64_t full = mine >= block ? (mine - block) / period + 1 : 0;
    const int64_t after = mine - full * period;  // elements from the block after the last full one to the end
    const int64_t rest = after <= 0 ? 0 : after < block ? after : block;
    return builder.add_blocks(d.size, begin, full, block, period, rest);
}

int check_dimension(const ArrayDimension& d) {
    if (d.size < 1)
        return fail(MPI_ERR_ARG, "a dimension of the array has %lld elements; it must have at least 1", number(d.size));
    if (d.processes < 1)
        return fail(MPI_ERR_ARG, "a dimension of the process grid has %lld processes; it must have at least 1",
                    number(d.processes));
    switch (d.distribution) {
        case MPI_DISTRIBUTE_NONE:
            if (d.processes != 1)
                return fail(MPI_ERR_ARG,
                            "a dimension with MPI_DISTRIBUTE_NONE has %lld processes in the process grid; it "
                            "must have 1",
                            number(d.processes));
            return MPI_SUCCESS;
        case MPI_DISTRIBUTE_BLOCK:
        case MPI_DISTRIBUTE_CYCLIC:
            if (d.argument != MPI_DISTRIBUTE_DFLT_DARG && d.argument < 1)
                return fail(MPI_ERR_ARG,
                            "distribution argument %lld is not valid; use a positive number or "
                            "MPI_DISTRIBUTE_DFLT_DARG",
                            number(d.argument));
            return MPI_SUCCESS;
        default:
            return fail(MPI_ERR_ARG,
                        "distribution %lld is not MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC or MPI_DISTRIBUTE_NONE",
                        number(d.distribution));
    }
}

}  // namespace

// Creates the equivalent of a subarray. The recipe's arguments: ndims, sizes, subsizes, starts, order.
int make_subarray(Recipe& recipe) {
    const int64_t* a = recipe.args.data();
    const int64_t ndims = a[0], order = recipe.args.back();
    if (const int error = check_order(ndims, order)) return error;
    ArrayBuilder builder(*recipe.types[0]);
    for (int64_t i = 0; i < ndims; ++i) {
        const int64_t d = order == MPI_ORDER_FORTRAN ? i : ndims - 1 - i;
        const int64_t size = a[1 + d], part = a[1 + ndims + d], start = a[1 + 2 * ndims + d];
        if (size < 1 || part < 1 || part > size || start < 0 || start > size - part)
            return fail(MPI_ERR_ARG, "dimension %lld: %lld elements from index %lld on are not within an array of %lld",
                        number(d), number(part), number(start), number(size));
        if (const int error = builder.add_range(size, start, part)) return error;
    }
    return builder.finish(recipe);
}

// Creates the equivalent of a distributed array. The recipe's arguments: size, rank, ndims, global sizes, distributions, distribution
// arguments, process grid, order.
int make_darray(Recipe& recipe) {
    const int64_t* a = recipe.args.data();
    const int64_t size = a[0], rank = a[1], ndims = a[2], order = recipe.args.back();
    if (const int error = check_order(ndims, order)) return error;
    if (size < 1 || rank < 0 || rank >= size)
        return fail(MPI_ERR_ARG, "rank %lld is not valid in a process grid of %lld; ranks begin at 0", number(rank),
                    number(size));
    std::vector<ArrayDimension> dimensions(static_cast<size_t>(ndims));
    // Ranks are placed in the process grid in row-major order, even if the array is column-major.
    int64_t below = rank, grid = 1;
    for (int64_t d = ndims; d-- > 0;) {
        ArrayDimension& dimension = dimensions[static_cast<size_t>(d)];
        dimension = {a[3 + d], a[3 + ndims + d], a[3 + 2 * ndims + d], a[3 + 3 * ndims + d], 0};
        if (const int error = check_dimension(dimension)) return error;
        dimension.place = below % dimension.processes;
        below /= dimension.processes;
        if (__builtin_mul_overflow(grid, dimension.processes, &grid)) return too_large();
    }
    if (grid != size)
        return fail(MPI_ERR_ARG,
                    "the process grid (the product of array_of_psizes) has %lld processes, but argument size is "
                    "%lld",
                    number(grid), number(size));
    ArrayBuilder builder(*recipe.types[0]);
    for (int64_t i = 0; i < ndims; ++i) {
        const size_t d = static_cast<size_t>(order == MPI_ORDER_FORTRAN ? i : ndims - 1 - i);
        if (const int error = add_dimension(builder, dimensions[d])) return error;
    }
    return builder.finish(recipe);
}

}  // namespace starling::datatype
