#include "launch/process/compat.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "base/config.h"

namespace starling::launch {

namespace {

// Beside this program: bin/, and where tests are in the build tree; lib/ as distributions call it.
std::string find_shim(const std::string& binary_interface) {
    char self[PATH_MAX];
    if (!realpath("/proc/self/exe", self)) return {};
    std::string directory(self);
    directory.erase(directory.rfind('/'));
    for (const char* up : {"/..", "/../.."})
        for (const char* lib : {"/lib", "/lib64", "/" STARLING_LIBDIR}) {
            const std::string folder = directory + up + lib + "/compat/" + binary_interface;
            if (char found[PATH_MAX]; realpath(folder.c_str(), found)) return found;
        }
    return {};
}

}  // namespace

bool is_compat(std::string_view word) {
    for (const char* const* known = kChoices<Compat>; *known; ++known)
        if (word == *known) return true;
    return false;
}

Shims choose_shims(std::string_view setting, const OtherLibrary& linked_with) {
    if (setting == kChoices<Compat>[static_cast<size_t>(Compat::off)] || !is_compat(setting))
        return {};  // a wrong word has been told
    const std::string linked = linked_with.binary_interface;
    if (!linked_with.name.empty() && linked.empty())
        return {{},
                "it is linked with " + linked_with.name +
                    ", whose binary interface Starling has no shim for; compile it with Starling's mpicc"};
    // An interpreter's libraries are not known before it runs: it may find either.
    std::string first(setting), second;
    if (setting == "auto") {
        first = linked.empty() ? "mpich" : linked;
        second = linked.empty() ? "openmpi" : "";
    } else if (!linked.empty() && linked != setting) {
        return {{},
                "it is linked with " + linked_with.name + ", but --compat " + first +
                    " was asked for; --compat auto finds out by itself"};
    }
    Shims shims;
    for (const std::string& name : {first, second}) {
        if (name.empty()) continue;
        const std::string folder = find_shim(name);
        if (folder.empty())
            return {{}, "there is no lib/compat/" + name + " beside Starling's mpiexec: is the installation whole?"};
        shims.library_path += (shims.library_path.empty() ? "" : ":") + folder;
    }
    return shims;
}

}  // namespace starling::launch
