#include "compat/redirect/soname.h"

#include <elf.h>
#include <link.h>
#include <sys/syscall.h>

#include <cstddef>

#include "compat/redirect/kernel_call.h"

namespace starling {

namespace {

constexpr int kMostSegments = 32, kMostEntries = 128, kLongestName = 64;

/// An open file; it is closed at the end of the scope.
struct OpenProgram {
    long fd;
    explicit OpenProgram(const char* path)
        : fd(kernel_call(SYS_openat, -100 /* AT_FDCWD */, reinterpret_cast<long>(path), 02000000 /* O_CLOEXEC */, 0)) {}
    OpenProgram(const OpenProgram&) = delete;
    OpenProgram& operator=(const OpenProgram&) = delete;
    ~OpenProgram() {
        if (fd >= 0) kernel_call(SYS_close, fd, 0, 0, 0);
    }

    /// Returns the number of bytes read at `offset`; 0: none.
    size_t read(void* to, size_t bytes, size_t offset) const {
        const long got =
            kernel_call(SYS_pread64, fd, reinterpret_cast<long>(to), static_cast<long>(bytes), static_cast<long>(offset));
        return got > 0 ? static_cast<size_t>(got) : 0;
    }
};

/// The segments of a library's file.
struct Segments {
    ElfW(Phdr) headers[kMostSegments] = {};
    int count = 0;

    const ElfW(Phdr) * dynamic() const {
        for (int i = 0; i < count; ++i)
            if (headers[i].p_type == PT_DYNAMIC) return &headers[i];
        return nullptr;
    }

    /// Returns where in the file the byte is that the loader maps to `address`; 0: nowhere.
    size_t offset_of(size_t address) const {
        for (int i = 0; i < count; ++i) {
            const ElfW(Phdr)& segment = headers[i];
            if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
                return address - segment.p_vaddr + segment.p_offset;
        }
        return 0;
    }
};

bool read_segments(const OpenProgram& file, Segments& segments) {
    static ElfW(Ehdr) header;
    if (file.read(&header, sizeof header, 0) != sizeof header) return false;
    for (int i = 0; i < SELFMAG; ++i)
        if (header.e_ident[i] != static_cast<unsigned char>(ELFMAG[i])) return false;
    if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum > kMostSegments) return false;
    segments.count = header.e_phnum;
    const size_t bytes = header.e_phnum * sizeof(ElfW(Phdr));
    return file.read(segments.headers, bytes, header.e_phoff) == bytes;
}

}  // namespace

const char* soname_of(const char* path) {
    static constinit Segments segments{};
    static ElfW(Dyn) entries[kMostEntries];
    static char name[kLongestName];
    const OpenProgram file(path);
    if (file.fd < 0 || !read_segments(file, segments)) return nullptr;
    const ElfW(Phdr)* const dynamic = segments.dynamic();
    if (!dynamic) return nullptr;
    const size_t bytes = dynamic->p_filesz < sizeof entries ? dynamic->p_filesz : sizeof entries;
    const size_t count = file.read(entries, bytes, dynamic->p_offset) / sizeof(ElfW(Dyn));
    size_t strings = 0, at = 0;
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; ++i) {
        if (entries[i].d_tag == DT_STRTAB) strings = segments.offset_of(entries[i].d_un.d_ptr);
        if (entries[i].d_tag == DT_SONAME) at = entries[i].d_un.d_val;
    }
    if (!strings || !at) return nullptr;
    const size_t length = file.read(name, sizeof name, strings + at);
    for (size_t i = 0; i < length; ++i)
        if (!name[i]) return name;
    return nullptr;
}

}  // namespace starling
