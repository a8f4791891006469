// Making derived datatypes (MPI 5.0 section 5.1).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "datatype/datatype.h"

namespace starling::datatype {

/// Makes a type with constructor `combiner` (MPI_COMBINER_…). `args` are the constructor's numbers in the
/// order of its C parameters, arrays in place (so for MPI_Type_indexed: count, block lengths,
/// displacements); `types` its constituents, which are retained. `large` notes that the large-count form
/// was called. The new type has one reference and no handles. Wrong numbers give MPI_ERR_ARG or
/// MPI_ERR_COUNT, sizes or bounds beyond 64 bits MPI_ERR_VALUE_TOO_LARGE.
int make(int combiner, bool large, std::vector<int64_t> args, std::vector<Datatype*> types, Datatype** made);

/// The unnamed predefined types, made once each and kept. `*found` is nullptr if there is none.
int find_f90(int combiner, int precision, int range, Datatype** found);
/// Pair of value and index for MPI_MINLOC and MPI_MAXLOC; *found is nullptr if the types do not suit.
int find_value_index(Datatype& value, Datatype& index, Datatype** found);
/// The named type with that class (MPI_TYPECLASS_…) and size; nullptr if there is none.
Datatype* match_size(int type_class, int size);

/// Makes a type ready for communication; nothing more than a mark, for all work is done in make().
/// fast.
void commit(Datatype& type);

/// A reference to a type, for the time of a scope.
class TypeRef {
  public:
    TypeRef() = default;
    /// Takes over the reference that make() gives.
    explicit TypeRef(Datatype* type) : type_(type) {}
    TypeRef(TypeRef&& other) noexcept : type_(std::exchange(other.type_, nullptr)) {}
    TypeRef& operator=(TypeRef&& other) noexcept {
        std::swap(type_, other.type_);
        return *this;
    }
    ~TypeRef() {
        if (type_) release(*type_);
    }
    /// The same type, held once more.
    static TypeRef to(Datatype& type) {
        retain(type);
        return TypeRef(&type);
    }
    /// Gives the reference away.
    Datatype* take() { return std::exchange(type_, nullptr); }
    Datatype* get() const { return type_; }
    Datatype& operator*() const { return *type_; }
    Datatype* operator->() const { return type_; }

  private:
    Datatype* type_ = nullptr;
};

}  // namespace starling::datatype
