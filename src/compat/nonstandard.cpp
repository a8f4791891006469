#include "compat/nonstandard.h"

#include <cstdio>

#include "compat/convert.h"

namespace starling::compat {

namespace {

decltype(Library::Error_class) error_class;
decltype(Library::Error_string) error_string;

const OwnClass* own_class(int code) {
    for (const OwnClass& own : abi::kOwnClasses)
        if (own.code == code) return &own;
    return nullptr;
}

int get_version(int* version, int* subversion) {
    *version = abi::kVersion;
    *subversion = abi::kSubversion;
    return MPI_SUCCESS;
}

int class_of(int code, int* out) {
    if (!own_class(code)) return error_class(code, out);
    *out = code;
    return MPI_SUCCESS;
}

int text_of(int code, char* text, int* length) {
    const OwnClass* own = own_class(code);
    if (!own) return error_string(code, text, length);
    *length = std::snprintf(text, MPI_MAX_ERROR_STRING, "%s: an error class of %s, which Starling never returns", own->name,
                            abi::kShim);
    return MPI_SUCCESS;
}

}  // namespace

void add_nonstandard(Library& library) {
    error_class = library.Error_class;
    error_string = library.Error_string;
    library.Get_version = get_version;
    library.Error_class = class_of;
    library.Error_string = text_of;
}

}  // namespace starling::compat
