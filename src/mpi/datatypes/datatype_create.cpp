#include "mpi/datatypes/datatype_create.h"

#include <vector>

#include "base/counts.h"
#include "base/error.h"
#include "datatype/construct.h"
#include "mpi/common/check.h"

namespace starling::mpi {

using datatype::Datatype;

namespace {

int bad_old_type(MPI_Datatype handle) {
    if (phase != LibraryPhase::running) return not_running();
    return raise(nullptr, fail(MPI_ERR_TYPE, "%s",
                               handle == MPI_DATATYPE_NULL ? "the old datatype is MPI_DATATYPE_NULL"
                                                           : "the old datatype is not valid; was it freed?"));
}

void return_handle(Datatype* type, MPI_Datatype* handle) {
    type->handles = 1;
    *handle = datatype::to_handle(type);
}

/// The numbers passed to a constructor, and the name of the first array that was a null pointer.
class Args {
  public:
    Args(std::initializer_list<int64_t> first, size_t more) {
        values_.reserve(first.size() + more);
        values_ = first;
    }
    /// Appends an array. If it is null but needed, stores its name for create(), which reports the error.
    Args& add(Counts array, int64_t count, const char* name) {
        if (count > 0 && !array) missing_ = name;
        for (int64_t i = 0; i < count && !missing_; ++i) values_.push_back(array[i]);
        return *this;
    }
    Args& add(int64_t value) {
        values_.push_back(value);
        return *this;
    }
    const char* missing() const { return missing_; }
    std::vector<int64_t> take() { return std::move(values_); }

  private:
    std::vector<int64_t> values_;
    const char* missing_ = nullptr;
};

int create(int combiner, bool large, Args args, std::vector<Datatype*> types, MPI_Datatype* newtype) {
    if (!newtype) return null_argument(nullptr, "newtype");
    if (args.missing()) return null_argument(nullptr, args.missing());
    Datatype* made = nullptr;
    if (const int error = datatype::make(combiner, large, args.take(), std::move(types), &made)) return raise(nullptr, error);
    return_handle(made, newtype);
    return MPI_SUCCESS;
}

// Runs a constructor with one constituent type.
int create(int combiner, bool large, Args args, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    Lock lock;
    Datatype* old = datatype::from_handle(oldtype);
    if (!old || phase != LibraryPhase::running) return bad_old_type(oldtype);
    return create(combiner, large, std::move(args), {old}, newtype);
}

size_t length(int64_t count) { return count > 0 ? static_cast<size_t>(count) : 0; }

Args indexed_args(int64_t count, Counts lengths, Counts displacements) {
    Args args({count}, 2 * length(count));
    args.add(lengths, count, "array_of_blocklengths").add(displacements, count, "array_of_displacements");
    return args;
}

Args block_args(int64_t count, int64_t block, Counts displacements) {
    Args args({count, block}, length(count));
    args.add(displacements, count, "array_of_displacements");
    return args;
}

int create_struct(bool large, int64_t count, Counts lengths, Counts displacements, const MPI_Datatype handles[],
                  MPI_Datatype* newtype) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (count > 0 && !handles) return null_argument(nullptr, "array_of_types");
    std::vector<Datatype*> types;
    types.reserve(length(count));
    for (int64_t i = 0; i < count; ++i) {
        types.push_back(datatype::from_handle(handles[i]));
        if (!types.back()) return bad_old_type(handles[i]);
    }
    return create(MPI_COMBINER_STRUCT, large, indexed_args(count, lengths, displacements), std::move(types), newtype);
}

Args subarray_args(int ndims, Counts sizes, Counts subsizes, Counts starts, int order) {
    Args args({ndims}, 3 * length(ndims) + 1);
    args.add(sizes, ndims, "array_of_sizes").add(subsizes, ndims, "array_of_subsizes");
    args.add(starts, ndims, "array_of_starts").add(order);
    return args;
}

Args darray_args(int size, int rank, int ndims, Counts gsizes, const int distribs[], const int dargs[], const int psizes[],
                 int order) {
    Args args({size, rank, ndims}, 4 * length(ndims) + 1);
    args.add(gsizes, ndims, "array_of_gsizes").add(distribs, ndims, "array_of_distribs");
    args.add(dargs, ndims, "array_of_dargs").add(psizes, ndims, "array_of_psizes").add(order);
    return args;
}

int f90(int combiner, int p, int r, MPI_Datatype* newtype) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!newtype) return null_argument(nullptr, "newtype");
    Datatype* found = nullptr;
    if (const int error = datatype::find_f90(combiner, p, r, &found)) return raise(nullptr, error);
    *newtype = datatype::to_handle(found);
    return MPI_SUCCESS;
}

}  // namespace

int Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_CONTIGUOUS, false, Args({count}, 0), oldtype, newtype);
}
int Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_CONTIGUOUS, true, Args({count}, 0), oldtype, newtype);
}

int Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_VECTOR, false, Args({count, blocklength, stride}, 0), oldtype, newtype);
}
int Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_VECTOR, true, Args({count, blocklength, stride}, 0), oldtype, newtype);
}

int Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_HVECTOR, false, Args({count, blocklength, stride}, 0), oldtype, newtype);
}
int Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                          MPI_Datatype* newtype) {
    return create(MPI_COMBINER_HVECTOR, true, Args({count, blocklength, stride}, 0), oldtype, newtype);
}

int Type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[], MPI_Datatype oldtype,
                 MPI_Datatype* newtype) {
    return create(MPI_COMBINER_INDEXED, false, indexed_args(count, array_of_blocklengths, array_of_displacements), oldtype,
                  newtype);
}
int Type_indexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                   MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_INDEXED, true, indexed_args(count, array_of_blocklengths, array_of_displacements), oldtype,
                  newtype);
}

int Type_create_hindexed(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                         MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_HINDEXED, false, indexed_args(count, array_of_blocklengths, array_of_displacements), oldtype,
                  newtype);
}
int Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                           MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_HINDEXED, true, indexed_args(count, array_of_blocklengths, array_of_displacements), oldtype,
                  newtype);
}

int Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[], MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
    return create(MPI_COMBINER_INDEXED_BLOCK, false, block_args(count, blocklength, array_of_displacements), oldtype, newtype);
}
int Type_create_indexed_block_c(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
                                MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_INDEXED_BLOCK, true, block_args(count, blocklength, array_of_displacements), oldtype, newtype);
}

int Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                               MPI_Datatype* newtype) {
    return create(MPI_COMBINER_HINDEXED_BLOCK, false, block_args(count, blocklength, array_of_displacements), oldtype, newtype);
}
int Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
                                 MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_HINDEXED_BLOCK, true, block_args(count, blocklength, array_of_displacements), oldtype, newtype);
}

int Type_create_struct(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                       const MPI_Datatype array_of_types[], MPI_Datatype* newtype) {
    return create_struct(false, count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
}
int Type_create_struct_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                         const MPI_Datatype array_of_types[], MPI_Datatype* newtype) {
    return create_struct(true, count, array_of_blocklengths, array_of_displacements, array_of_types, newtype);
}

int Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[], const int array_of_starts[],
                         int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_SUBARRAY, false, subarray_args(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order),
                  oldtype, newtype);
}
int Type_create_subarray_c(int ndims, const MPI_Count array_of_sizes[], const MPI_Count array_of_subsizes[],
                           const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_SUBARRAY, true, subarray_args(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order),
                  oldtype, newtype);
}

int Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[], const int array_of_distribs[],
                       const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
                       MPI_Datatype* newtype) {
    return create(MPI_COMBINER_DARRAY, false,
                  darray_args(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes, order),
                  oldtype, newtype);
}
int Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[], const int array_of_distribs[],
                         const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
                         MPI_Datatype* newtype) {
    return create(MPI_COMBINER_DARRAY, true,
                  darray_args(size, rank, ndims, array_of_gsizes, array_of_distribs, array_of_dargs, array_of_psizes, order),
                  oldtype, newtype);
}

int Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_RESIZED, false, Args({lb, extent}, 0), oldtype, newtype);
}
int Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype) {
    return create(MPI_COMBINER_RESIZED, true, Args({lb, extent}, 0), oldtype, newtype);
}

int Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) {
    Lock lock;
    Datatype* old = datatype::from_handle(oldtype);
    if (!old || phase != LibraryPhase::running) return bad_old_type(oldtype);
    if (!newtype) return null_argument(nullptr, "newtype");
    Datatype* made = nullptr;
    if (const int error = datatype::make(MPI_COMBINER_DUP, false, {}, {old}, &made)) return raise(nullptr, error);
    datatype::TypeRef holder(made);
    if (old->attributes && !old->attributes->empty()) {
        const auto kept = datatype::TypeRef::to(*old);
        auto copies = std::make_unique<comm::AttributeSet>();
        if (const int error = old->attributes->copy_to(comm::AttributeHolder(oldtype), *copies)) return raise(nullptr, error);
        made->attributes = copies.release();
    }
    return_handle(holder.take(), newtype);
    return MPI_SUCCESS;
}

int Type_create_f90_real(int p, int r, MPI_Datatype* newtype) { return f90(MPI_COMBINER_F90_REAL, p, r, newtype); }
int Type_create_f90_complex(int p, int r, MPI_Datatype* newtype) { return f90(MPI_COMBINER_F90_COMPLEX, p, r, newtype); }
int Type_create_f90_integer(int r, MPI_Datatype* newtype) { return f90(MPI_COMBINER_F90_INTEGER, 0, r, newtype); }

int Type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
    if (phase != LibraryPhase::running) return not_running();
    if (!datatype) return null_argument(nullptr, "datatype");
    const Datatype* found = datatype::match_size(typeclass, size);
    if (!found)
        return raise(nullptr, fail(MPI_ERR_ARG, "no predefined datatype has type class %d and %d bytes", typeclass, size));
    *datatype = datatype::to_handle(found);
    return MPI_SUCCESS;
}

int Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype* pair_type) {
    Lock lock;
    Datatype* value = datatype::from_handle(value_type);
    Datatype* index = datatype::from_handle(index_type);
    if (!value || !index || phase != LibraryPhase::running) return bad_old_type(value ? index_type : value_type);
    if (!pair_type) return null_argument(nullptr, "pair_type");
    Datatype* found = nullptr;
    if (const int error = datatype::find_value_index(*value, *index, &found)) return raise(nullptr, error);
    *pair_type = datatype::to_handle(found);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
