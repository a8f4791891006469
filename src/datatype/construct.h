// Creates derived datatypes (MPI 5.0 section 5.1).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "datatype/datatype.h"

namespace starling::datatype {

/// Creates a type with constructor `combiner` (MPI_COMBINER_…). `args` are the constructor's numbers in the order of its C parameters,
/// arrays in place (for MPI_Type_indexed: count, block lengths, displacements); `types` are its constituents, which are retained. `large`
/// records that the large-count form was called. The new type has one reference and no handles. Returns MPI_ERR_ARG or MPI_ERR_COUNT for
/// invalid numbers, MPI_ERR_VALUE_TOO_LARGE if sizes or bounds exceed 64 bits.
int make(int combiner, bool large, std::vector<int64_t> args, std::vector<Datatype*> types, Datatype** made);

/// Finds an unnamed predefined type for MPI_Type_create_f90_integer and similar functions. The type is created at the first call and kept.
/// `*found` is nullptr if there is none.
int find_f90(int combiner, int precision, int range, Datatype** found);
/// Finds the pair type of a value and an index for MPI_MINLOC and MPI_MAXLOC; `*found` is nullptr if the two types do not suit.
int find_value_index(Datatype& value, Datatype& index, Datatype** found);
/// Returns the named type with that class (MPI_TYPECLASS_…) and size; nullptr if there is none.
Datatype* match_size(int type_class, int size);

/// Commits a type for communication. This only sets a flag, because make() has done all work.
void commit(Datatype& type);

/// Owns one reference of a type.
class TypeRef {
  public:
    TypeRef() = default;
    /// Takes over the reference that make() returns.
    explicit TypeRef(Datatype* type) : type_(type) {}
    TypeRef(TypeRef&& other) noexcept : type_(std::exchange(other.type_, nullptr)) {}
    TypeRef& operator=(TypeRef&& other) noexcept {
        std::swap(type_, other.type_);
        return *this;
    }
    ~TypeRef() {
        if (type_) release(*type_);
    }
    /// Retains the type and returns a TypeRef for it.
    static TypeRef to(Datatype& type) {
        retain(type);
        return TypeRef(&type);
    }
    /// Returns the type, and passes the reference to the caller.
    Datatype* take() { return std::exchange(type_, nullptr); }
    Datatype* get() const { return type_; }
    Datatype& operator*() const { return *type_; }
    Datatype* operator->() const { return type_; }

  private:
    Datatype* type_ = nullptr;
};

}  // namespace starling::datatype
