#include "profile/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/hexadecimal.h"

namespace starling::profile {

namespace {

using Module = control::ProfileReport::ModuleRecord;

/// What the walk over the loaded modules looks for, and what it finds.
struct ModuleSearch {
    uint64_t address;
    bool is_program = false;
    std::string build_id;
};

/// Returns the build id within a segment of notes as hexadecimal digits; empty if it has none.
std::string build_id_in(const char* notes, size_t size) {
    const auto padded = [](size_t length) { return (length + 3) & ~size_t{3}; };
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
        ElfW(Nhdr) note;
        std::memcpy(&note, notes + at, sizeof note);
        const size_t name = at + sizeof note, description = name + padded(note.n_namesz);
        if (description > size || note.n_descsz > size - description) return {};
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0)
            return hexadecimal(reinterpret_cast<const unsigned char*>(notes + description), note.n_descsz);
        at = description + padded(note.n_descsz);
    }
    return {};
}

int look_at(dl_phdr_info* info, size_t, void* argument) {
    auto& search = *static_cast<ModuleSearch*>(argument);
    bool contains = false;
    for (size_t i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
        contains |= segment.p_type == PT_LOAD && search.address >= begin && search.address - begin < segment.p_memsz;
    }
    if (!contains) return 0;
    search.is_program = !info->dlpi_name || info->dlpi_name[0] == '\0';
    for (size_t i = 0; i < info->dlpi_phnum && search.build_id.empty(); ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type == PT_NOTE)
            search.build_id = build_id_in(reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr), segment.p_memsz);
    }
    return 1;
}

std::string absolute(const char* path) {
    char* const found = realpath(path, nullptr);
    const std::string text(found ? found : path);
    std::free(found);
    return text;
}

}  // namespace

Module module_of(uint64_t address) {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(address), &info) == 0 || !info.dli_fname) return {};
    const char* const slash = std::strrchr(info.dli_fname, '/');
    ModuleSearch search{address, false, {}};
    dl_iterate_phdr(look_at, &search);
    return {slash ? slash + 1 : info.dli_fname, absolute(search.is_program ? "/proc/self/exe" : info.dli_fname),
            search.build_id};
}

}  // namespace starling::profile
