// Differences between an interface and Starling's standard: the version for which programs were compiled, and extra error classes, which
// Starling never returns but programs may query.
#pragma once

namespace starling::compat {

struct OwnClass {
    int code;  ///< error code of the interface; the standard has no such code, so conversions do not change it
    const char* name;
};

struct Library;
/// Replaces the functions of the library that return versions and error classes by functions that know these differences, for C and
/// Fortran.
void add_nonstandard(Library& library);

}  // namespace starling::compat
