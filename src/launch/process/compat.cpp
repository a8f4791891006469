#include "launch/process/compat.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <vector>

#include "base/config.h"
#include "base/library_mark.h"

namespace starling::launch {

// The folder is next to bin/ after installation, or in the build tree for tests. It is lib, lib64, or the configured name.
std::string find_library(const std::string& name) {
    char self[PATH_MAX];
    if (!realpath("/proc/self/exe", self)) return {};
    std::string directory(self);
    directory.erase(directory.rfind('/'));
    for (const char* up : {"/..", "/../.."})
        for (const char* lib : {"/lib", "/lib64", "/" STARLING_LIBDIR}) {
            const std::string path = directory + up + lib + "/" + name;
            if (char found[PATH_MAX]; realpath(path.c_str(), found)) return found;
        }
    return {};
}

bool is_compat(std::string_view word) {
    for (const char* const* known = kChoices<Compat>; *known; ++known)
        if (word == *known) return true;
    return false;
}

std::string library_folder() {
    const std::string library = find_library("libmpi_abi.so.1");
    return library.empty() ? library : library.substr(0, library.rfind('/'));
}

Redirection find_redirection() {
    Redirection found{find_library("compat/any/libstarling_redirect.so"), library_folder()};
    return found.libraries.empty() ? Redirection() : found;
}

OwnLibrary find_own_library(const ElfFile& program, std::string_view search_path) {
    constexpr std::string_view kOwn[] = {"libmpi_abi.so.1", "libmpifort_abi.so.1", "liboshmem.so.1"};
    const std::vector<std::string> needed = program.needed();
    const auto own = std::find_first_of(needed.begin(), needed.end(), std::begin(kOwn), std::end(kOwn));
    if (own == needed.end()) return OwnLibrary::not_needed;
    for (const std::string& folder : program.search_folders(search_path)) {
        const ElfFile library(folder + "/" + *own);
        if (!library.valid()) continue;
        // Only libmpi_abi.so.1 exists elsewhere. The other two are Starling's, which find it in their own folder.
        return *own != kOwn[0] || is_own_library(library) ? OwnLibrary::found : OwnLibrary::foreign;
    }
    return OwnLibrary::absent;
}

// Versions before the mark have functions of that name.
bool is_own_library(const ElfFile& file) {
    if (file.has_note(kLibraryMark)) return true;
    const std::vector<std::string> names = file.symbols().had;
    return std::find(names.begin(), names.end(), "starling_set_foreign") != names.end();
}

Shims choose_shims(std::string_view setting, const OtherLibrary& linked_with) {
    if (setting == kChoices<Compat>[static_cast<size_t>(Compat::off)] || !is_compat(setting))
        return {};  // an invalid word has been reported already
    const std::string linked = linked_with.binary_interface;
    if (!linked_with.name.empty() && linked.empty())
        return {{},
                "it is linked with " + linked_with.name +
                    ", whose binary interface Starling has no shim for; compile it with Starling's mpicc",
                {}};
    // An interpreter's libraries are not known before it runs, so both shims are put into the path.
    std::string first(setting), second;
    if (setting == "auto") {
        first = linked.empty() ? "mpich" : linked;
        second = linked.empty() ? "openmpi" : "";
    } else if (!linked.empty() && linked != setting) {
        return {{},
                "it is linked with " + linked_with.name + ", but --compat " + first +
                    " was requested; --compat auto chooses by itself",
                {}};
    }
    Shims shims;
    for (const std::string& name : {first, second}) {
        if (name.empty()) continue;
        const std::string folder = find_library("compat/" + name);
        if (folder.empty())
            return {{},
                    "there is no lib/compat/" + name +
                        " beside Starling's mpiexec; the installation is incomplete: "
                        "install Starling again",
                    {}};
        shims.library_path += (shims.library_path.empty() ? "" : ":") + folder;
        (name == "openmpi" ? shims.names.openmpi : shims.names.mpich) = true;
    }
    return shims;
}

}  // namespace starling::launch
