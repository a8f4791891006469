// What is in a program's or a library's file for the loader: what it needs, and the names that it looks for and has.
#pragma once

#include <elf.h>

#include <cstdint>
#include <string>
#include <vector>

namespace starling::launch {

/// An ELF file of this machine's word size and byte order. Reads when it is asked; what doesn't fit together in the file is as if it
/// were not there. Not thread-safe.
class ElfFile {
  public:
    explicit ElfFile(const std::string& path);
    ElfFile(const ElfFile&) = delete;
    ElfFile& operator=(const ElfFile&) = delete;
    ~ElfFile();

    /// Whether it is one: a script, a static archive and an unreadable file are not.
    bool valid() const { return !segments_.empty(); }
    /// The loader that it wants to be started by; empty: none, as libraries and static programs.
    std::string interpreter() const;
    /// The libraries that it is linked with, as it names them.
    std::vector<std::string> needed() const;
    /// Whether it names folders where the loader looks for them (RPATH, RUNPATH).
    bool has_path() const;
    /// The names that it looks for in other files and can't do without, and those that others find in it.
    struct Symbols {
        std::vector<std::string> wanted, had;
    };
    Symbols symbols() const;

  private:
    template <typename T>
    bool read(uint64_t offset, T* out, uint64_t count) const;
    bool read_segments();
    uint64_t offset_of(uint64_t address) const;
    std::vector<Elf64_Dyn> dynamic() const;

    int fd_;
    std::vector<Elf64_Phdr> segments_;
};

}  // namespace starling::launch
