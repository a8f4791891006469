// Reads the parts of a program or library file that matter to the loader: needed libraries, and undefined and defined symbols.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

/// An ELF file of this machine's kind of processor. Reads on demand; inconsistent parts of the file are treated as missing. Not
/// thread-safe.
class ElfFile {
  public:
    explicit ElfFile(const std::string& path);
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;
    ~ElfFile();

    /// Returns whether the file is such a file: scripts, programs of other machines and unreadable files are not.
    bool valid() const { return !segments_.empty(); }
    /// Returns the loader that the program requests; empty for libraries and static programs.
    std::string interpreter() const;
    /// Returns the names of the libraries that the file is linked with.
    std::vector<std::string> needed() const;
    /// Returns whether the file has an RPATH or RUNPATH, where the loader searches for libraries.
    bool has_path() const;
    /// Returns the folders where the loader searches for the file's libraries, in its order: RPATH, `search_path` (LD_LIBRARY_PATH),
    /// RUNPATH. The system's folders, which come last, are left out.
    std::vector<std::string> search_folders(std::string_view search_path) const;
    /// Returns whether the file has an ELF note of this name.
    bool has_note(std::string_view name) const;
    /// `wanted`: symbols that the file requires from other files (weak ones excluded). `had`: symbols that it defines for other files.
    struct Symbols {
        std::vector<std::string> wanted, had;
    };
    Symbols symbols() const;

  private:
    template <typename T>
    bool read(uint64_t offset, T* out, uint64_t count) const;
    bool read_segments();
    uint64_t offset_of(uint64_t address) const;
    /// The dynamic section, and the string table that it names; the table is empty if it is missing.
    struct DynamicPart {
        std::vector<Elf64_Dyn> entries;
        std::string strings;
    };
    const DynamicPart& dynamic() const;
    DynamicPart read_dynamic() const;
    std::vector<std::string> texts_of(int64_t tag) const;

    std::string path_;
    int fd_;
    std::vector<Elf64_Phdr> segments_;
    mutable std::optional<DynamicPart> dynamic_;  ///< read on the first use
};

}  // namespace starling::launch
