// Foreign programs and libraries, as `starling doctor` and mpiexec read them.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "launch/process/elf_file.h"

using namespace starling;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
    {
        const launch::ElfFile file("/proc/self/fd/" + std::to_string(fd));
        const std::string interpreter = file.interpreter();
        const launch::ElfFile::Symbols symbols = file.symbols();
        if (interpreter.size() > size || file.needed().size() > size || symbols.had.size() + symbols.wanted.size() > size)
            std::abort();
    }
    close(fd);
    return 0;
}

namespace {

/// Returns a shared object of one page: a dynamic section with one library, and a table of two symbols.
std::string object() {
    std::string file(2048, '\0');
    const auto put = [&file](size_t at, const auto& value) { std::memcpy(file.data() + at, &value, sizeof value); };
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64, head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_phoff = 64, head.e_phnum = 3, head.e_phentsize = sizeof(Elf64_Phdr);
    head.e_shoff = 1024, head.e_shnum = 3, head.e_shentsize = sizeof(Elf64_Shdr);
    put(0, head);
    put(64, Elf64_Phdr{PT_LOAD, 0, 0, 0x1000, 0, 2048, 2048, 0});
    put(64 + 56, Elf64_Phdr{PT_INTERP, 0, 400, 0x1000 + 400, 0, 8, 8, 0});
    put(64 + 112, Elf64_Phdr{PT_DYNAMIC, 0, 500, 0x1000 + 500, 0, 64, 64, 0});
    std::memcpy(file.data() + 400, "/lib/ld", 8);
    put(500, Elf64_Dyn{DT_STRTAB, {0x1000 + 600}});
    put(516, Elf64_Dyn{DT_STRSZ, {40}});
    put(532, Elf64_Dyn{DT_NEEDED, {1}});
    std::memcpy(file.data() + 600, "\0libmpi.so\0MPI_Init\0MPI_Send", 29);
    put(1024 + 64, Elf64_Shdr{0, SHT_DYNSYM, 0, 0, 700, 48, 2, 0, 0, 24});
    put(1024 + 128, Elf64_Shdr{0, SHT_STRTAB, 0, 0, 600, 40, 0, 0, 0, 0});
    put(700, Elf64_Sym{11, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, SHN_UNDEF, 0, 0});
    put(724, Elf64_Sym{20, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0, 0});
    return file;
}

}  // namespace

const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {object()};
    count = std::size(seeds);
    return seeds;
}
