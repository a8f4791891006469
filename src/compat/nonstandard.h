// What an interface has otherwise than the standard that Starling is of: the version that its programs were compiled for, and error
// classes of its own, which Starling never gives but programs ask about.
#pragma once

namespace starling::compat {

struct OwnClass {
    int code;  ///< none of the standard's, so that conversions leave it as it is
    const char* name;
};

struct Library;
/// Puts what knows of these in the place of the library's functions, for C and Fortran alike.
void know_beyond(Library& library);

}  // namespace starling::compat
