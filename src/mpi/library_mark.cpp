// The note that tells Starling's library and shims from other vendors' files of the same names. The linker puts notes into the first page of
// the file.
#include "base/library_mark.h"

namespace starling {
namespace {

/// An ELF note: lengths of name and contents, a type, and the name, padded to whole words. There are no contents.
struct LibraryNote {
    unsigned name_length = sizeof kLibraryMark, length = 0, type = 1;
    char name[(sizeof kLibraryMark + 3) / 4 * 4] = {};
    constexpr LibraryNote() {
        for (unsigned i = 0; i < sizeof kLibraryMark; ++i) name[i] = kLibraryMark[i];
    }
};
[[gnu::section(".note.starling"), gnu::used, gnu::aligned(4)]] constexpr LibraryNote kNote;

}  // namespace
}  // namespace starling
