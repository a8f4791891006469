// Data representations (MPI 5.0 section 14.5): external32 and those that the program registers. Data in such a representation has its own
// sizes in the file, so the types of a view are translated into types of bytes, and data is converted as a whole before it is written or
// after it has been read. The representations "native" and "internal" need none of this.
//
// Not thread-safe: needs the library's lock. Functions of the program run outside the library, so other threads may be inside meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "datatype/construct.h"
#include "datatype/datatype.h"
#include "rma/access.h"

namespace starling::file {

/// The conversion functions of a representation that the program has registered. Null: data is not converted (MPI_CONVERSION_FN_NULL).
struct ConversionFunctions {
    MPI_Datarep_conversion_function* read = nullptr;
    MPI_Datarep_conversion_function* write = nullptr;
    MPI_Datarep_conversion_function_c* large_read = nullptr;  ///< set instead of `read` by MPI_Register_datarep_c
    MPI_Datarep_conversion_function_c* large_write = nullptr;
    MPI_Datarep_extent_function* extent = nullptr;
    void* extra_state = nullptr;
};

/// A representation that converts. Lives until the process ends, as the standard has no function that removes one.
struct Representation {
    std::string name;
    bool external32 = false;  ///< whether this is external32; then `functions` are not used
    ConversionFunctions functions;
    mutable std::unordered_map<const datatype::Datatype*, int64_t> extents;  ///< known results of `functions.extent`
};

/// Finds a representation by its name; `converts` is null for "native" and "internal". Returns MPI_ERR_UNSUPPORTED_DATAREP or MPI_ERR_ARG
/// with failure_text() if there is none.
int find_representation(std::string_view name, const Representation*& converts);
/// Registers a representation. Returns MPI_ERR_DUP_DATAREP or MPI_ERR_ARG with failure_text() if that is not possible.
int register_representation(std::string_view name, const ConversionFunctions& functions);

/// Computes the bytes that one element of the type takes in a file, without gaps. The result is -1 if they do not fit in 64 bits.
int size_in_file(const Representation& representation, const datatype::Datatype& type, int64_t& bytes);
/// Creates the type of bytes that describes where an element's data lies in a file.
int type_in_file(const Representation& representation, const datatype::Datatype& type, datatype::TypeRef& made);

/// Converts the data of `memory` to its form in a file, of `bytes` bytes at `out`.
int convert_to_file(const Representation& representation, const rma::LocalBuffer& memory, std::byte* out);
/// Converts `bytes` bytes of a file to the beginning of `memory`. `filled`: the bytes of memory that have data then.
int convert_from_file(const Representation& representation, const rma::LocalBuffer& memory, std::byte* in, int64_t bytes,
                      int64_t& filled);

}  // namespace starling::file
