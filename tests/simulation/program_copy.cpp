#include "program_copy.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "prices.h"
#include "world.h"

namespace starling::simulation {

void give_up(const char* what, const char* why) {
    std::fprintf(stderr, "simulation: %s: %s\n", what, why);
    std::exit(2);
}

namespace {

template <class T>
T read_at(const char* file, uint64_t offset) {
    T out;
    std::memcpy(&out, file + offset, sizeof out);
    return out;
}

std::vector<Elf64_Phdr> headers_of(const char* file) {
    const auto header = read_at<Elf64_Ehdr>(file, 0);
    std::vector<Elf64_Phdr> all;
    for (int i = 0; i < header.e_phnum; ++i)
        all.push_back(read_at<Elf64_Phdr>(file, header.e_phoff + static_cast<size_t>(i) * sizeof(Elf64_Phdr)));
    return all;
}

/// Returns the offset in the file of what is loaded at this address.
uint64_t offset_of(const std::vector<Elf64_Phdr>& headers, uint64_t address) {
    for (const Elf64_Phdr& each : headers)
        if (each.p_type == PT_LOAD && address >= each.p_vaddr && address - each.p_vaddr < each.p_filesz)
            return address - each.p_vaddr + each.p_offset;
    give_up("a shared object", "its dynamic section refers to an address outside the file");
}

std::vector<Elf64_Dyn> dynamic_of(const char* file, const std::vector<Elf64_Phdr>& headers) {
    std::vector<Elf64_Dyn> all;
    for (const Elf64_Phdr& each : headers)
        for (uint64_t at = 0; each.p_type == PT_DYNAMIC && at < each.p_filesz; at += sizeof(Elf64_Dyn))
            all.push_back(read_at<Elf64_Dyn>(file, each.p_offset + at));
    return all;
}

}  // namespace

DynamicString find_dynamic_string(const char* file, int64_t tag, std::string_view wanted) {
    const std::vector<Elf64_Phdr> headers = headers_of(file);
    const std::vector<Elf64_Dyn> dynamic = dynamic_of(file, headers);
    uint64_t strings = 0;
    for (const Elf64_Dyn& each : dynamic)
        if (each.d_tag == DT_STRTAB) strings = offset_of(headers, each.d_un.d_ptr);
    for (const Elf64_Dyn& each : dynamic) {
        if (each.d_tag == DT_NULL) break;
        if (each.d_tag != tag) continue;
        DynamicString found{strings + each.d_un.d_val, file + strings + each.d_un.d_val};
        if (wanted.empty() || found.text == wanted) return found;
    }
    return {};
}

std::string numbered_name(const std::string& name, size_t index) {
    const std::string number = std::to_string(index);
    if (name.size() < number.size() + 3) give_up("a copy of the library", "the library's name is too short for a number");
    // "sim0…042": the name must keep its length, since other strings follow it in the file.
    return "sim" + std::string(name.size() - 3 - number.size(), '0') + number;
}

// Calls of MPI functions go through a few instructions of their own, which charge the call's price.

extern "C" [[gnu::visibility("hidden"), gnu::used]] void starling_simulation_enter(const char* function) {
    Process* const me = caller();
    if (!me || !me->fiber) return;
    me->doing = function;
    world()->pass(prices().of.processor_mpi_call);
}

// Calls starling_simulation_enter(%r10) with the arguments of a function saved, then jumps to that function, %r11.
extern "C" void starling_simulation_call();
asm(R"(
.text
.globl starling_simulation_call
.hidden starling_simulation_call
.type starling_simulation_call, @function
starling_simulation_call:
    push %rdi
    push %rsi
    push %rdx
    push %rcx
    push %r8
    push %r9
    push %r11
    sub $32, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    mov %r10, %rdi
    call starling_simulation_enter
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    add $32, %rsp
    pop %r11
    pop %r9
    pop %r8
    pop %rcx
    pop %rdx
    pop %rsi
    pop %rdi
    jmp *%r11
.size starling_simulation_call, . - starling_simulation_call
)");

namespace {

/// Instructions of one priced call.
struct CallStub {
    static constexpr char kCode[] = "\x49\xbb........\x49\xba........\x48\xb8........\xff\xe0";
    char code[sizeof kCode - 1];

    void write(const void* function, const char* name) {
        std::memcpy(code, kCode, sizeof code);
        const void* const common = reinterpret_cast<const void*>(&starling_simulation_call);
        std::memcpy(code + 2, &function, sizeof function);  // movabs $function, %r11
        std::memcpy(code + 12, &name, sizeof name);         // movabs $name, %r10
        std::memcpy(code + 22, &common, sizeof common);     // movabs $starling_simulation_call, %rax; jmp *%rax
    }
};

bool has_price(std::string_view name) {
    if (name == "MPI_Wtime" || name == "PMPI_Wtime") return false;  // the price of the clock is all of it
    return name.starts_with("MPI_") || name.starts_with("PMPI_") || name.starts_with("MPIX_") || name.starts_with("PMPIX_") ||
           name.starts_with("shmem_") || name.starts_with("pshmem_");
}

/// The tables of a loaded object by which its calls of other objects' functions are bound.
struct CallTable {
    const Elf64_Rela* calls = nullptr;
    size_t count = 0;
    const Elf64_Sym* symbols = nullptr;
    const char* strings = nullptr;
};

CallTable table_of(const link_map& loaded) {
    CallTable all;
    for (const Elf64_Dyn* each = loaded.l_ld; each->d_tag != DT_NULL; ++each) {
        if (each->d_tag == DT_JMPREL) all.calls = reinterpret_cast<const Elf64_Rela*>(each->d_un.d_ptr);
        if (each->d_tag == DT_PLTRELSZ) all.count = each->d_un.d_val / sizeof(Elf64_Rela);
        if (each->d_tag == DT_SYMTAB) all.symbols = reinterpret_cast<const Elf64_Sym*>(each->d_un.d_ptr);
        if (each->d_tag == DT_STRTAB) all.strings = reinterpret_cast<const char*>(each->d_un.d_ptr);
    }
    return all;
}

void make_writable(void* at) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    void* const begin = reinterpret_cast<void*>(reinterpret_cast<uint64_t>(at) / page * page);
    if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) give_up("the calls of a program", std::strerror(errno));
}

/// Gives each call of an MPI function its price.
void price_calls(const link_map& loaded) {
    const CallTable table = table_of(loaded);
    if (table.count == 0) return;
    void* const memory =
        mmap(nullptr, table.count * sizeof(CallStub), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) give_up("the calls of a program", std::strerror(errno));
    auto* stub = static_cast<CallStub*>(memory);
    for (size_t i = 0; i < table.count; ++i) {
        const char* const name = table.strings + table.symbols[ELF64_R_SYM(table.calls[i].r_info)].st_name;
        if (ELF64_R_TYPE(table.calls[i].r_info) != R_X86_64_JUMP_SLOT || !has_price(name)) continue;
        auto* const slot = reinterpret_cast<void**>(loaded.l_addr + table.calls[i].r_offset);
        stub->write(*slot, name);
        make_writable(slot);
        *slot = stub++;
    }
    if (mprotect(memory, table.count * sizeof(CallStub), PROT_READ | PROT_EXEC) != 0)
        give_up("the calls of a program", std::strerror(errno));
}

const std::string& contents_of(const std::string& file) {
    static std::map<std::string, std::string> all;
    const auto [known, is_new] = all.try_emplace(file);
    if (!is_new) return known->second;
    std::ifstream stream(file, std::ios::binary);
    if (!stream) give_up(file.c_str(), std::strerror(errno));
    std::string& bytes = known->second;
    bytes.assign(std::istreambuf_iterator<char>(stream), {});
    if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
        give_up(file.c_str(), "is not a shared object");
    return bytes;
}

constexpr const char* kShmemLibrary = "liboshmem.so.1";

/// Loads copy number `index` of a shared object. These names become those of the copies with the same number. Returns its handle.
void* load_copy(const std::string& file, const std::vector<std::string>& names, size_t index) {
    std::string bytes = contents_of(file);
    for (const std::string& name : names)
        for (const int64_t tag : {DT_SONAME, DT_NEEDED})
            if (const DynamicString found = find_dynamic_string(bytes.data(), tag, name); !found.text.empty())
                bytes.replace(found.offset, name.size(), numbered_name(name, index));
    const int fd = memfd_create(std::filesystem::path(file).filename().c_str(), MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        give_up("a copy of the program", std::strerror(errno));
    // The descriptor stays open: the loader takes two copies with one name for the same object.
    const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) give_up(file.c_str(), dlerror());
    return handle;
}

}  // namespace

void* load_beside(const std::string& file, const std::string& library_name, size_t index) {
    return load_copy(file, {library_name}, index);
}

ProgramCopy load_program(const std::string& file, const std::string& library, const std::string& library_name, size_t index) {
    const char* const bytes = contents_of(file).data();
    const bool uses_shmem = !find_dynamic_string(bytes, DT_NEEDED, kShmemLibrary).text.empty();
    if (!uses_shmem && find_dynamic_string(bytes, DT_NEEDED, library_name).text.empty())
        give_up(file.c_str(), ("is not linked with " + library_name).c_str());
    const std::vector<std::string> names{library_name, kShmemLibrary};
    if (uses_shmem) load_copy(std::filesystem::path(library).parent_path() / kShmemLibrary, names, index);
    void* const handle = load_copy(file, names, index);
    auto* const begin = reinterpret_cast<ProgramMain*>(dlsym(handle, "main"));
    if (!begin) give_up(file.c_str(), "has no function main() that is visible");
    link_map* loaded = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &loaded) != 0) give_up("a program", dlerror());
    price_calls(*loaded);
    return {begin, loaded->l_addr};
}

}  // namespace starling::simulation
