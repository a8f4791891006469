// A copy of an MPI program for each simulated process. The copy's reference to the library is rewritten to the name of the process's own
// copy of the library, so that the loader binds the program's MPI functions to it. Functions of libc are those that the simulator exports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace starling::simulation {

using ProgramMain = int(int, char**);

/// A string in the dynamic section of an ELF file.
struct DynamicString {
    uint64_t offset = 0;  ///< in the file
    std::string text;     ///< empty: the file has no such string
};

/// Finds the string of the first entry with this tag, DT_SONAME or DT_NEEDED, whose text is `wanted`; empty: any text.
DynamicString find_dynamic_string(const char* file, int64_t tag, std::string_view wanted);

/// Returns a name as long as `name`, unique for the copy with this number.
std::string numbered_name(const std::string& name, size_t index);

struct ProgramCopy {
    ProgramMain* main = nullptr;  ///< null: there is no program
    uint64_t address = 0;         ///< where the program was loaded
};

/// Loads copy number `index` of the program, a shared object with a function main(), bound to the library's copy with the same number.
/// `library` is the library's file, and `library_name` the name by which the program refers to it. If the program uses OpenSHMEM's library,
/// which lies beside the other one, it gets a copy of that too.
ProgramCopy load_program(const std::string& file, const std::string& library, const std::string& library_name, size_t index);

/// Loads copy number `index` of another library that is linked with the library, bound to the library's copy with the same number. Returns its
/// handle.
void* load_beside(const std::string& file, const std::string& library_name, size_t index);

/// Prints an error of the simulator's setup, and exits.
[[noreturn]] void give_up(const char* what, const char* why);

}  // namespace starling::simulation
