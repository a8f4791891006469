#include "file/representation.h"

#include <algorithm>
#include <climits>
#include <vector>

#include "base/error.h"
#include "base/lock.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "datatype/external32.h"
#include "datatype/recipe.h"

namespace starling::file {

namespace {

using datatype::Datatype;
using datatype::Recipe;
using datatype::TypeRef;

STARLING_STATE NoDestroy<std::vector<std::unique_ptr<Representation>>> representations_storage;
constinit auto& representations = representations_storage.value;

const Representation* find(std::string_view name) {
    for (const auto& known : representations)
        if (known->name == name) return known.get();
    return nullptr;
}

/// Returns the type to which an unnamed predefined type (of MPI_Type_create_f90_real and others) is equivalent; any other type itself.
const Datatype& named_form(const Datatype& type) {
    const Datatype* form = &type;
    while (form->recipe && form->permanent && form->recipe->equivalent) form = form->recipe->equivalent;
    return *form;
}

/// Computes the size of a named type in the file, by the program's function if it has one.
int named_size(const Representation& representation, const Datatype& type, int64_t& bytes) {
    bytes = datatype::external_size(type);
    if (representation.external32) return MPI_SUCCESS;
    if (const auto known = representation.extents.find(&type); known != representation.extents.end()) {
        bytes = known->second;
        return MPI_SUCCESS;
    }
    MPI_Aint extent = 0;
    int error;
    {
        const OutsideLibrary outside;
        error = representation.functions.extent(datatype::to_handle(&type), &extent, representation.functions.extra_state);
    }
    if (error || extent < 0)
        return fail(MPI_ERR_CONVERSION, "the extent function of the data representation \"%s\" has failed for a type",
                    representation.name.c_str());
    bytes = representation.extents[&type] = extent;
    return MPI_SUCCESS;
}

int make_bytes(int64_t bytes, TypeRef& made) {
    Datatype* type = nullptr;
    if (const int error = datatype::make(MPI_COMBINER_CONTIGUOUS, true, {bytes}, {&datatype::predefined(MPI_BYTE)}, &type))
        return error;
    made = TypeRef(type);
    return MPI_SUCCESS;
}

/// Creates the type of a constructor call whose constituents have been translated. The constructors that count elements scale with their
/// constituents; those that count bytes keep their numbers, which the program computes with MPI_File_get_type_extent.
int rebuild(const Representation& representation, const Recipe& recipe, TypeRef& made) {
    std::vector<TypeRef> parts(recipe.types.size());
    std::vector<Datatype*> types;
    for (size_t i = 0; i < parts.size(); ++i) {
        if (const int error = type_in_file(representation, *recipe.types[i], parts[i])) return error;
        types.push_back(parts[i].get());
    }
    Datatype* type = nullptr;
    if (const int error = datatype::make(recipe.combiner, recipe.large, recipe.args, types, &type)) return error;
    made = TypeRef(type);
    return MPI_SUCCESS;
}

/// The arguments of one call of a conversion function: `count` basic elements of the data from number `position` on.
struct Conversion {
    const rma::LocalBuffer& memory;
    std::byte* file;
    int64_t count, position;
};

template <class Small, class Large>
int call(const Representation& representation, Small* small, Large* large, const Conversion& conversion) {
    const MPI_Datatype type = datatype::to_handle(conversion.memory.type);
    void* const extra_state = representation.functions.extra_state;
    int error;
    {
        const OutsideLibrary outside;
        error = large
                    ? large(conversion.memory.buffer, type, conversion.count, conversion.file, conversion.position, extra_state)
                    : small(conversion.memory.buffer, type, static_cast<int>(conversion.count), conversion.file,
                            conversion.position, extra_state);
    }
    return error ? fail(MPI_ERR_CONVERSION, "a conversion function of the data representation \"%s\" has failed",
                        representation.name.c_str())
                 : MPI_SUCCESS;
}

/// Calls a conversion function for whole elements of the buffer's type. One call takes all that its count can express.
template <class Small, class Large>
int call_for(const Representation& representation, Small* small, Large* large, const rma::LocalBuffer& memory, std::byte* file,
             int64_t elements) {
    int64_t size = 0;
    if (const int error = size_in_file(representation, *memory.type, size)) return error;
    const int64_t items = std::max<int64_t>(memory.type->elements, 1);
    const int64_t most = large ? elements : std::max<int64_t>(INT_MAX / items, 1);
    for (int64_t at = 0; at < elements; at += most) {
        const int64_t now = std::min(most, elements - at);
        const Conversion conversion{memory, file + at * size, now * items, at * items};
        if (const int error = call(representation, small, large, conversion)) return error;
    }
    return MPI_SUCCESS;
}

/// The beginning of an element's data.
struct Prefix {
    int64_t items = 0;         ///< basic elements
    int64_t memory_bytes = 0;  ///< their bytes in memory
    int64_t file_bytes = 0;    ///< their bytes in the file
    void add(const Datatype& type, int64_t in_file, int64_t count) {
        items += type.elements * count;
        memory_bytes += type.size * count;
        file_bytes += in_file * count;
    }
};

/// Extends a prefix by the basic elements of one more element of the type, as long as all lie in `most` bytes of the file.
int extend(const Representation& representation, const Datatype& type, int64_t most, Prefix& prefix) {
    const Datatype& form = named_form(type);
    if (!form.recipe) {
        int64_t size = 0;
        if (const int error = size_in_file(representation, form, size)) return error;
        if (prefix.file_bytes + size <= most) prefix.add(form, size, 1);
        return MPI_SUCCESS;
    }
    int error = MPI_SUCCESS;
    bool ended = false;
    datatype::for_each_part(*form.recipe, [&](const datatype::RecipePart& part) {
        int64_t one = 0;
        if (error || ended || part.count == 0 || part.block == 0) return;
        if ((error = size_in_file(representation, *part.type, one)) || one == 0) return;
        const int64_t all = part.count * part.block, whole = std::min(all, (most - prefix.file_bytes) / one);
        prefix.add(*part.type, one, whole);
        ended = whole < all;
        if (ended) error = extend(representation, *part.type, most, prefix);
    });
    return error;
}

/// Calls a conversion function for the beginning of element number `element`, of which the file has `bytes` bytes. Adds the bytes of memory
/// that have data then to `filled`.
int read_part(const Representation& representation, const rma::LocalBuffer& memory, int64_t element, std::byte* in,
              int64_t bytes, int64_t& filled) {
    Prefix prefix;
    if (const int error = extend(representation, *memory.type, bytes, prefix)) return error;
    if (prefix.items == 0) return MPI_SUCCESS;
    filled += prefix.memory_bytes;
    const Conversion conversion{memory, in, prefix.items, element * memory.type->elements};
    return call(representation, representation.functions.read, representation.functions.large_read, conversion);
}

/// Checks that data which is not converted (MPI_CONVERSION_FN_NULL) has the same size in the file as in memory.
int check_equal_size(const Representation& representation, const Datatype& type) {
    int64_t size = 0;
    if (const int error = size_in_file(representation, type, size)) return error;
    if (size == type.size) return MPI_SUCCESS;
    return fail(
        MPI_ERR_CONVERSION,
        "the data representation \"%s\" has no function for this conversion, but %lld bytes in the file for %lld in memory",
        representation.name.c_str(), static_cast<long long>(size), static_cast<long long>(type.size));
}

}  // namespace

int find_representation(std::string_view name, const Representation*& converts) {
    converts = nullptr;
    if (name == "native" || name == "internal") return MPI_SUCCESS;
    if (name == "external32" && !find(name)) {
        representations.push_back(std::make_unique<Representation>());
        representations.back()->name = name;
        representations.back()->external32 = true;
    }
    converts = find(name);
    if (converts) return MPI_SUCCESS;
    return fail(MPI_ERR_UNSUPPORTED_DATAREP,
                "there is no data representation \"%.*s\"; use native, internal, external32 or one from MPI_Register_datarep",
                static_cast<int>(std::min<size_t>(name.size(), MPI_MAX_DATAREP_STRING)), name.data());
}

int register_representation(std::string_view name, const ConversionFunctions& functions) {
    if (name.empty() || name.size() >= MPI_MAX_DATAREP_STRING)
        return fail(MPI_ERR_ARG, "the name of a data representation must have 1 to %d characters", MPI_MAX_DATAREP_STRING - 1);
    if (!functions.extent) return fail(MPI_ERR_ARG, "argument dtype_file_extent_fn is a null pointer");
    if (name == "native" || name == "internal" || name == "external32" || find(name))
        return fail(MPI_ERR_DUP_DATAREP, "there is a data representation \"%.*s\" already", static_cast<int>(name.size()),
                    name.data());
    representations.push_back(std::make_unique<Representation>());
    representations.back()->name = name;
    representations.back()->functions = functions;
    return MPI_SUCCESS;
}

int size_in_file(const Representation& representation, const Datatype& type, int64_t& bytes) {
    if (representation.external32) {
        bytes = datatype::external_size(type);
        return MPI_SUCCESS;
    }
    const Datatype& form = named_form(type);
    if (!form.recipe) return named_size(representation, form, bytes);
    int64_t all = 0;
    int error = MPI_SUCCESS;
    bool fits = true;
    datatype::for_each_part(*form.recipe, [&](const datatype::RecipePart& part) {
        int64_t one = 0;
        if (error || part.count == 0 || part.block == 0) return;
        error = size_in_file(representation, *part.type, one);
        fits = fits && one >= 0 && !__builtin_mul_overflow(one, part.count, &one) &&
               !__builtin_mul_overflow(one, part.block, &one) && !__builtin_add_overflow(all, one, &all);
    });
    bytes = fits ? all : -1;
    return error;
}

int type_in_file(const Representation& representation, const Datatype& type, TypeRef& made) {
    const Datatype& form = named_form(type);
    if (form.recipe && form.recipe->combiner != MPI_COMBINER_NAMED) return rebuild(representation, *form.recipe, made);
    int64_t bytes = 0;
    if (const int error = named_size(representation, form, bytes)) return error;
    return make_bytes(bytes, made);
}

int convert_to_file(const Representation& representation, const rma::LocalBuffer& memory, std::byte* out) {
    const ConversionFunctions& functions = representation.functions;
    if (representation.external32) {
        datatype::pack_external(*memory.type, memory.count, memory.buffer, out);
        return MPI_SUCCESS;
    }
    if (functions.write || functions.large_write)
        return call_for(representation, functions.write, functions.large_write, memory, out, memory.count);
    if (const int error = check_equal_size(representation, *memory.type)) return error;
    datatype::pack(*memory.type, memory.count, memory.buffer, 0, out, memory.bytes());
    return MPI_SUCCESS;
}

int convert_from_file(const Representation& representation, const rma::LocalBuffer& memory, std::byte* in, int64_t bytes,
                      int64_t& filled) {
    const ConversionFunctions& functions = representation.functions;
    int64_t size = 0;
    filled = 0;
    if (const int error = size_in_file(representation, *memory.type, size)) return error;
    if (!representation.external32 && !functions.read && !functions.large_read) {
        if (const int error = check_equal_size(representation, *memory.type)) return error;
        filled = bytes;
        datatype::unpack(*memory.type, memory.count, memory.buffer, 0, in, static_cast<uint64_t>(bytes));
        return MPI_SUCCESS;
    }
    const int64_t elements = size > 0 ? std::min(bytes / size, memory.count) : 0;
    filled = elements * memory.type->size;
    // The file may end within an element.
    const int64_t used = elements * size, rest = elements < memory.count ? bytes - used : 0;
    if (!representation.external32) {
        if (elements > 0)
            if (const int error = call_for(representation, functions.read, functions.large_read, memory, in, elements))
                return error;
        return rest > 0 ? read_part(representation, memory, elements, in + used, rest, filled) : MPI_SUCCESS;
    }
    datatype::unpack_external(*memory.type, elements, memory.buffer, in);
    std::byte* const next = static_cast<std::byte*>(memory.buffer) + elements * memory.type->extent;
    if (rest > 0) filled += datatype::unpack_external_part(*memory.type, next, in + used, rest);
    return MPI_SUCCESS;
}

}  // namespace starling::file
