#include "library.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "system.h"

namespace starling::simulation {

namespace {

/// The part of the file that the loader needs, up to the debug information; addr2line finds that in the original file.
struct File {
    int fd = -1;
    uint64_t bytes = 0;
    std::vector<Elf64_Phdr> parts;  ///< program headers of the loaded segments
    DynamicString name;             ///< the library's name, by which programs refer to it
};

bool pauses_have_a_price = false;

/// The offset and length of a function in the file; both 0: the file does not contain its symbol.
struct FunctionPlace {
    uint64_t offset = 0, bytes = 0;
};
FunctionPlace place_of(const char* function, const char* bytes) {
    const auto read = [&](uint64_t at, auto& out) { std::memcpy(&out, bytes + at, sizeof out); };
    Elf64_Ehdr header;
    read(0, header);
    for (int i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr symbols, names, code;
        read(header.e_shoff + static_cast<size_t>(i) * sizeof symbols, symbols);
        if (symbols.sh_type != SHT_SYMTAB) continue;
        read(header.e_shoff + symbols.sh_link * sizeof names, names);
        for (uint64_t at = 0; at < symbols.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            read(symbols.sh_offset + at, symbol);
            if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx >= header.e_shnum ||
                std::strcmp(bytes + names.sh_offset + symbol.st_name, function) != 0)
                continue;
            read(header.e_shoff + symbol.st_shndx * sizeof code, code);
            return {code.sh_offset + symbol.st_value - code.sh_addr, symbol.st_size};
        }
    }
    return {};
}

/// Makes the function at this place jump to `target`. Returns false if the function is not there, or is shorter than a jump.
bool redirect(char* bytes, const FunctionPlace& function, const void* target) {
    char jump[] = "\x48\xb8........\xff\xe0";  // movabs $target, %rax; jmp *%rax
    const auto address = reinterpret_cast<uint64_t>(target);
    if (function.bytes < sizeof jump - 1) return false;
    std::memcpy(jump + 2, &address, sizeof address);
    std::memcpy(bytes + function.offset, jump, sizeof jump - 1);
    return true;
}

/// Replaces the pause between two polls of the rings. Runs of seeds return at once: no other process runs meanwhile and the clock stands
/// still; the pauses took a sixth of a run's time.
void replace_pauses(char* bytes) {
    constexpr char kReturn = '\xc3';
    const FunctionPlace pause = place_of("_ZN8starling8progress12_GLOBAL__N_119pause_between_pollsEv", bytes);
    if (!pauses_have_a_price) {
        if (pause.bytes > 0) bytes[pause.offset] = kReturn;
    } else if (!redirect(bytes, pause, reinterpret_cast<const void*>(&simulated_pause))) {
        give_up("pause_between_polls()", "the library does not have it, or it is shorter than a jump");
    }
}

/// Replaces the processor's counter, by which the library times its copies, by a simulated one: otherwise equal seeds could differ.
void simulate_cycles(char* bytes) {
#ifdef __SSE2__
    if (!redirect(bytes, place_of("_ZN8starling12_GLOBAL__N_110cycles_nowEv", bytes),
                  reinterpret_cast<const void*>(&simulated_cycles)))
        give_up("cycles_now()", "the library does not have it, or it is shorter than a jump");
#endif
}

int make_file(const std::string& name) {
    const int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
    if (fd < 0) give_up("a copy of the library", std::strerror(errno));
    return fd;
}

// The file is read through a temporary mapping: memory that the parent keeps costs every run time, at its fork and at its end.
const File& contents(const std::string& name) {
    static File file;
    if (file.fd >= 0) return file;
    const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) give_up(name.c_str(), std::strerror(errno));
    const auto size = static_cast<size_t>(status.st_size);
    if (size < sizeof(Elf64_Ehdr)) give_up(name.c_str(), "is not the library");
    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED) give_up(name.c_str(), std::strerror(errno));
    auto* const bytes = static_cast<char*>(memory);
    replace_pauses(bytes);
    simulate_cycles(bytes);
    Elf64_Ehdr header;
    std::memcpy(&header, bytes, sizeof header);
    for (int i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr part;
        std::memcpy(&part, bytes + header.e_phoff + static_cast<size_t>(i) * sizeof part, sizeof part);
        if (part.p_type != PT_LOAD) continue;
        file.parts.push_back(part);
        file.bytes = std::max(file.bytes, part.p_offset + part.p_filesz);
    }
    file.name = find_dynamic_string(bytes, DT_SONAME, {});
    file.fd = make_file("libmpi");
    if (write(file.fd, bytes, file.bytes) != static_cast<ssize_t>(file.bytes))
        give_up("a copy of the library", std::strerror(errno));
    munmap(memory, size);
    close(fd);
    return file;
}

int copy_of(const File& file, size_t index) {
    const int fd = make_file("libmpi-" + std::to_string(index));
    off_t at = 0;
    while (static_cast<uint64_t>(at) < file.bytes)
        if (sendfile(fd, file.fd, &at, file.bytes - static_cast<uint64_t>(at)) <= 0)
            give_up("a copy of the library", std::strerror(errno));
    const std::string name = numbered_name(file.name.text, index);
    if (pwrite(fd, name.data(), name.size(), static_cast<off_t>(file.name.offset)) != static_cast<ssize_t>(name.size()))
        give_up("the name of a copy of the library", std::strerror(errno));
    return fd;
}

/// Maps read-only code of every copy from one file, so that the processor's caches and the memory hold it once for all ranks.
void share_code(void* handle, const File& file, int fd) {
    link_map* loaded = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &loaded) != 0) give_up("a copy of the library", dlerror());
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    for (const Elf64_Phdr& part : file.parts) {
        if (part.p_flags & PF_W) continue;
        const uint64_t before = part.p_vaddr % page, offset = part.p_offset - before;
        // The last page of the code may also contain the start of the next segment, which is read again.
        const uint64_t bytes = (before + part.p_filesz + page - 1) / page * page,
                       whole = (before + part.p_filesz) / page * page;
        const int protection = PROT_READ | (part.p_flags & PF_X ? PROT_EXEC : 0);
        if (mmap(reinterpret_cast<void*>(loaded->l_addr + part.p_vaddr - before), bytes, protection, MAP_PRIVATE | MAP_FIXED,
                 file.fd, static_cast<off_t>(offset)) == MAP_FAILED ||
            fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(whole)) !=
                0)
            give_up("code that copies of the library share", std::strerror(errno));
    }
}

template <class F>
void find(void* handle, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    if (!function) give_up(name, "the library does not have it");
}

// The program is loaded while the library's copy still has its own name: share_code() maps the name that all copies have.
Library* load(const std::string& name, size_t index, const std::string& program) {
    const File& file = contents(name);
    const int fd = copy_of(file, index);
    const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) give_up("a copy of the library", dlerror());
    auto* const made = new Library;
    if (!program.empty()) made->program = load_program(program, name, file.name.text, index);
    void* const keep = load_beside(KEEP_LIBRARY, file.name.text, index);
    share_code(handle, file, fd);
#define FUNCTION(name)                                                                 \
    made->name = reinterpret_cast<decltype(&MPI_##name)>(dlsym(handle, "MPI_" #name)); \
    if (!made->name) give_up("MPI_" #name, "the library does not have it");
#include "functions.def"
#undef FUNCTION
    find(handle, "MPIX_Phase_begin", made->Phase_begin);
    find(handle, "MPIX_Comm_replace", made->Comm_replace);
    find(handle, "MPIX_Win_revoke", made->Win_revoke);
    find(handle, "MPIX_Win_is_revoked", made->Win_is_revoked);
    find(handle, "MPIX_File_revoke", made->File_revoke);
#define FUNCTION(name)                                                                                                      \
    made->shmem_##name = reinterpret_cast<decltype(&shmem::starling_shmem_##name)>(dlsym(handle, "starling_shmem_" #name)); \
    if (!made->shmem_##name) give_up("starling_shmem_" #name, "the library does not have it");
#include "functions_shmem.def"
#undef FUNCTION
#define FUNCTION(name) find(keep, "starling_keep_" #name, made->keep_##name);
#include "functions_keep.def"
#undef FUNCTION
    return made;
}

}  // namespace

void price_pauses() { pauses_have_a_price = true; }

const Library& library(const std::string& file, size_t index, const std::string& program) {
    static std::vector<Library*> loaded;
    while (loaded.size() <= index) loaded.push_back(load(file, loaded.size(), program));
    return *loaded[index];
}

}  // namespace starling::simulation
