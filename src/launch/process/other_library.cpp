#include "launch/process/other_library.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

namespace starling::launch {

namespace {

/// Beginnings of the names that MPI libraries have for the loader.
struct Name {
    std::string_view begin;
    const char* mpi;
    const char* binary_interface;
};
constexpr Name kNames[] = {
    {"libmpi.so.12", "MPICH, Intel MPI or MVAPICH", "mpich"},
    {"libmpifort.so.12", "MPICH, Intel MPI or MVAPICH", "mpich"},
    {"libmpich", "MPICH", "mpich"},
    {"libmpi_cray.so.", "Cray MPICH", ""},
    {"libmpi_mpifh.so.", "Open MPI", "openmpi"},
    {"libmpi_usempi", "Open MPI", "openmpi"},
    {"libmpi.so.", "Open MPI", "openmpi"},
};
constexpr std::string_view kOwn = "libmpi_abi.so.";

constexpr uint64_t kMostBytes = 1 << 20;  // of a table in a file: more is none
constexpr int kMostProcesses = 64;        // looked at behind a wrapper

OtherLibrary describe(std::string_view file) {
    for (const Name& name : kNames)
        if (file.starts_with(name.begin))
            return {std::string(name.mpi) + " (" + std::string(file) + ")", name.binary_interface};
    return {};
}

class File {
  public:
    explicit File(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (fd_ >= 0) close(fd_);
    }
    template <typename T>
    bool read(uint64_t offset, T* out, uint64_t count) const {
        const uint64_t bytes = count * sizeof(T);
        return fd_ >= 0 && bytes <= kMostBytes &&
               pread(fd_, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
    }
    std::string rest() const {
        std::string text;
        char buffer[16 * 1024];
        for (ssize_t got; fd_ >= 0 && (got = ::read(fd_, buffer, sizeof buffer)) > 0;)
            text.append(buffer, static_cast<size_t>(got));
        return text;
    }

  private:
    int fd_;
};

using Segments = std::vector<Elf64_Phdr>;

bool read_segments(const File& file, Segments& out) {
    Elf64_Ehdr head{};
    if (!file.read(0, &head, 1) || std::string_view(reinterpret_cast<char*>(head.e_ident), SELFMAG) != ELFMAG ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB || head.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    out.resize(head.e_phnum);
    return file.read(head.e_phoff, out.data(), out.size());
}

// Where in the file that is what the loader puts at `address`.
uint64_t offset_of(const Segments& segments, uint64_t address) {
    for (const Elf64_Phdr& segment : segments)
        if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    return 0;
}

std::vector<std::string> needed_libraries(const File& file) {
    Segments segments;
    if (!read_segments(file, segments)) return {};
    const auto found = std::find_if(segments.begin(), segments.end(), [](auto& s) { return s.p_type == PT_DYNAMIC; });
    if (found == segments.end() || found->p_filesz > kMostBytes) return {};
    std::vector<Elf64_Dyn> entries(found->p_filesz / sizeof(Elf64_Dyn));
    if (!file.read(found->p_offset, entries.data(), entries.size())) return {};
    uint64_t strings_at = 0, strings_size = 0;
    for (const Elf64_Dyn& entry : entries) {
        if (entry.d_tag == DT_STRTAB) strings_at = offset_of(segments, entry.d_un.d_ptr);
        if (entry.d_tag == DT_STRSZ) strings_size = entry.d_un.d_val;
    }
    if (strings_at == 0 || strings_size > kMostBytes) return {};
    std::string strings(strings_size, '\0');
    if (!file.read(strings_at, strings.data(), strings_size)) return {};
    std::vector<std::string> names;
    for (const Elf64_Dyn& entry : entries) {
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_NEEDED && entry.d_un.d_val < strings_size) names.emplace_back(strings.c_str() + entry.d_un.d_val);
    }
    return names;
}

// Who has Starling's library as well knows what it does.
OtherLibrary first_other(const std::vector<std::string>& libraries) {
    OtherLibrary other;
    for (const std::string& library : libraries) {
        if (library.starts_with(kOwn)) return {};
        if (other.name.empty()) other = describe(library);
    }
    return other;
}

std::vector<std::string> mapped_files(pid_t pid) {
    const std::string text = File(("/proc/" + std::to_string(pid) + "/maps").c_str()).rest();
    std::vector<std::string> names;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line(text.data() + at, end - at);
        const size_t slash = line.rfind('/');
        if (slash != std::string_view::npos && (names.empty() || names.back() != line.substr(slash + 1)))
            names.emplace_back(line.substr(slash + 1));
        at = end + 1;
    }
    return names;
}

void add_children(std::vector<pid_t>& processes, size_t of) {
    const std::string pid = std::to_string(processes[of]);
    const std::string text = File(("/proc/" + pid + "/task/" + pid + "/children").c_str()).rest();
    int child = 0, used = 0;
    for (const char* at = text.c_str(); std::sscanf(at, "%d%n", &child, &used) == 1; at += used)
        if (processes.size() < kMostProcesses) processes.push_back(child);
}

}  // namespace

OtherLibrary other_library_of(const std::string& path) { return first_other(needed_libraries(File(path.c_str()))); }

std::string other_library_in(pid_t pid) {
    std::vector<pid_t> processes{pid};
    for (size_t i = 0; i < processes.size(); ++i) {
        if (OtherLibrary other = first_other(mapped_files(processes[i])); !other.name.empty()) return other.name;
        add_children(processes, i);
    }
    return {};
}

}  // namespace starling::launch
