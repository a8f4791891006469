#include "launch/process/elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>

// The head of the file that contains this code, which the linker provides.
extern "C" [[gnu::visibility("hidden")]] const Elf64_Ehdr __ehdr_start;

namespace starling::launch {

namespace {

constexpr uint64_t kMostTableBytes = 256 << 20;  // sanity limit for a table in a file

// Returns the string at an offset of a string table; empty beyond its end.
std::string string_at(const std::string& strings, uint64_t place) {
    return place < strings.size() ? std::string(strings.c_str() + place) : std::string();
}

}  // namespace

ElfFile::ElfFile(const std::string& path) : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!read_segments()) segments_.clear();
}

ElfFile::~ElfFile() {
    if (fd_ >= 0) close(fd_);
}

template <typename T>
bool ElfFile::read(uint64_t offset, T* out, uint64_t count) const {
    const uint64_t bytes = count * sizeof(T);
    return fd_ >= 0 && count <= kMostTableBytes && bytes <= kMostTableBytes &&
           pread(fd_, out, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

bool ElfFile::read_segments() {
    Elf64_Ehdr head{};
    if (!read(0, &head, 1) || std::string_view(reinterpret_cast<char*>(head.e_ident), SELFMAG) != ELFMAG ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_machine != __ehdr_start.e_machine || head.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    segments_.resize(head.e_phnum);
    return read(head.e_phoff, segments_.data(), segments_.size());
}

// Returns the file offset of the bytes that the loader maps at `address`.
uint64_t ElfFile::offset_of(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_)
        if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    return 0;
}

std::string ElfFile::interpreter() const {
    const auto found = std::find_if(segments_.begin(), segments_.end(), [](auto& s) { return s.p_type == PT_INTERP; });
    if (found == segments_.end() || found->p_filesz > kMostTableBytes) return {};
    std::string path(found->p_filesz, '\0');
    if (!read(found->p_offset, path.data(), path.size())) return {};
    return path.c_str();
}

const ElfFile::DynamicPart& ElfFile::dynamic() const {
    if (!dynamic_) dynamic_ = read_dynamic();
    return *dynamic_;
}

ElfFile::DynamicPart ElfFile::read_dynamic() const {
    const auto found = std::find_if(segments_.begin(), segments_.end(), [](auto& s) { return s.p_type == PT_DYNAMIC; });
    if (found == segments_.end() || found->p_filesz > kMostTableBytes) return {};
    DynamicPart part{std::vector<Elf64_Dyn>(found->p_filesz / sizeof(Elf64_Dyn)), {}};
    if (!read(found->p_offset, part.entries.data(), part.entries.size())) return {};
    const auto end =
        std::find_if(part.entries.begin(), part.entries.end(), [](const Elf64_Dyn& entry) { return entry.d_tag == DT_NULL; });
    part.entries.erase(end, part.entries.end());
    uint64_t strings_at = 0, strings_size = 0;
    for (const Elf64_Dyn& entry : part.entries) {
        if (entry.d_tag == DT_STRTAB) strings_at = offset_of(entry.d_un.d_ptr);
        if (entry.d_tag == DT_STRSZ) strings_size = entry.d_un.d_val;
    }
    if (strings_at == 0 || strings_size > kMostTableBytes) return part;
    part.strings.resize(strings_size);
    if (!read(strings_at, part.strings.data(), strings_size)) part.strings.clear();
    return part;
}

bool ElfFile::has_path() const {
    const std::vector<Elf64_Dyn>& entries = dynamic().entries;
    return std::any_of(entries.begin(), entries.end(),
                       [](const Elf64_Dyn& entry) { return entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH; });
}

std::vector<std::string> ElfFile::needed() const { return texts_of(DT_NEEDED); }

std::vector<std::string> ElfFile::search_folders(std::string_view search_path) const {
    std::vector<std::string> folders;
    const auto add = [&](std::string_view list) {
        for (size_t end; !list.empty(); list.remove_prefix(std::min(end + 1, list.size()))) {
            end = std::min(list.find_first_of(":;"), list.size());
            std::string folder(list.substr(0, end));
            for (const std::string_view origin : {"$ORIGIN", "${ORIGIN}"})
                if (const size_t at = folder.find(origin); at != std::string::npos)
                    folder.replace(at, origin.size(), std::filesystem::absolute(path_).parent_path());
            folders.push_back(folder.empty() ? "." : folder);
        }
    };
    const std::vector<std::string> later = texts_of(DT_RUNPATH);
    if (later.empty())
        for (const std::string& list : texts_of(DT_RPATH)) add(list);
    add(search_path);
    for (const std::string& list : later) add(list);
    return folders;
}

bool ElfFile::has_note(std::string_view name) const {
    for (const Elf64_Phdr& segment : segments_) {
        if (segment.p_type != PT_NOTE || segment.p_filesz > kMostTableBytes) continue;
        std::string notes(segment.p_filesz, '\0');
        if (!read(segment.p_offset, notes.data(), notes.size())) continue;
        Elf64_Nhdr head;
        const auto whole = [](uint64_t bytes) { return (bytes + 3) / 4 * 4; };
        for (size_t at = 0; at + sizeof head <= notes.size(); at += whole(head.n_namesz) + whole(head.n_descsz)) {
            std::memcpy(&head, notes.data() + at, sizeof head);
            at += sizeof head;
            if (at < notes.size() && notes.substr(at, head.n_namesz).c_str() == name) return true;
        }
    }
    return false;
}

std::vector<std::string> ElfFile::texts_of(int64_t tag) const {
    const auto& [entries, strings] = dynamic();
    if (strings.empty()) return {};
    std::vector<std::string> texts;
    for (const Elf64_Dyn& entry : entries)
        if (entry.d_tag == tag) texts.push_back(string_at(strings, entry.d_un.d_val));
    return texts;
}

ElfFile::Symbols ElfFile::symbols() const {
    Elf64_Ehdr head{};
    if (!valid() || !read(0, &head, 1) || head.e_shentsize != sizeof(Elf64_Shdr)) return {};
    std::vector<Elf64_Shdr> sections(head.e_shnum);
    if (!read(head.e_shoff, sections.data(), sections.size())) return {};
    const auto found = std::find_if(sections.begin(), sections.end(), [](auto& s) { return s.sh_type == SHT_DYNSYM; });
    if (found == sections.end() || found->sh_link >= sections.size() || found->sh_size > kMostTableBytes) return {};
    const Elf64_Shdr& names = sections[found->sh_link];
    if (names.sh_size > kMostTableBytes) return {};
    std::vector<Elf64_Sym> symbols(found->sh_size / sizeof(Elf64_Sym));
    std::string strings(names.sh_size, '\0');
    if (!read(found->sh_offset, symbols.data(), symbols.size()) || !read(names.sh_offset, strings.data(), strings.size()))
        return {};
    Symbols out;
    for (const Elf64_Sym& symbol : symbols) {
        std::string name = string_at(strings, symbol.st_name);
        if (symbol.st_shndx != SHN_UNDEF)
            out.had.push_back(std::move(name));
        else if (!name.empty() && ELF64_ST_BIND(symbol.st_info) != STB_WEAK)
            out.wanted.push_back(std::move(name));
    }
    return out;
}

}  // namespace starling::launch
