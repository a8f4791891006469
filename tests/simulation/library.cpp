#include "library.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace starling::simulation {

namespace {

[[noreturn]] void give_up(const char* what, const char* why) {
    std::fprintf(stderr, "simulation: %s: %s\n", what, why);
    std::exit(2);
}

/// What the loader needs of the file: what is to be in memory. Debug information is several times as much; addr2line finds a
/// trace's places in the file itself.
const std::string& contents(const std::string& file) {
    static std::string bytes;
    if (!bytes.empty()) return bytes;
    std::ifstream in(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
    if (bytes.size() < sizeof(Elf64_Ehdr)) give_up(file.c_str(), "is not the library");
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    uint64_t end = 0;
    for (int i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr part;
        std::memcpy(&part, bytes.data() + header.e_phoff + static_cast<size_t>(i) * sizeof part, sizeof part);
        if (part.p_type == PT_LOAD) end = std::max(end, part.p_offset + part.p_filesz);
    }
    bytes.resize(end);
    return bytes;
}

Library* load(const std::string& file, size_t index) {
    const std::string& bytes = contents(file);
    const int fd = memfd_create(("libmpi-" + std::to_string(index)).c_str(), MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        give_up("a copy of the library", std::strerror(errno));
    const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) give_up("a copy of the library", dlerror());
    auto* const made = new Library;
#define FUNCTION(name)                                                                 \
    made->name = reinterpret_cast<decltype(&MPI_##name)>(dlsym(handle, "MPI_" #name)); \
    if (!made->name) give_up("MPI_" #name, "the library does not have it");
#include "functions.def"
#undef FUNCTION
    made->Phase_begin = reinterpret_cast<decltype(&MPIX_Phase_begin)>(dlsym(handle, "MPIX_Phase_begin"));
    if (!made->Phase_begin) give_up("MPIX_Phase_begin", "the library does not have it");
#define FUNCTION(name)                                                                                                      \
    made->shmem_##name = reinterpret_cast<decltype(&shmem::starling_shmem_##name)>(dlsym(handle, "starling_shmem_" #name)); \
    if (!made->shmem_##name) give_up("starling_shmem_" #name, "the library does not have it");
#include "functions_shmem.def"
#undef FUNCTION
    return made;
}

}  // namespace

const Library& library(const std::string& file, size_t index) {
    static std::vector<Library*> loaded;
    while (loaded.size() <= index) loaded.push_back(load(file, loaded.size()));
    return *loaded[index];
}

}  // namespace starling::simulation
