// Hints that come from outside of the program: a file of the site or of the user, and variables of other MPIs.
#include <fnmatch.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "file/hint_text.h"
#include "file/hints.h"
#include "mpi.h"

namespace starling::file {

namespace {

constexpr char kSpaces[] = " \t\r";

/// Sets a hint if its lengths are those of an info object.
void set_hint(std::string_view key, std::string_view value, comm::Info& info) {
    if (key.empty() || value.empty() || key.size() > MPI_MAX_INFO_KEY || value.size() > MPI_MAX_INFO_VAL) return;
    info.set(key, value);
}

/// Cuts the text before `separator` off `rest` and returns it.
std::string_view cut(std::string_view& rest, char separator) {
    const size_t at = rest.find(separator);
    const std::string_view part = rest.substr(0, at);
    rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
    return part;
}

std::string_view trimmed(std::string_view text) {
    const size_t first = text.find_first_not_of(kSpaces);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

/// Whether a pattern of shells fits the name, or its last part if the pattern has no `/`.
bool fits(std::string_view pattern, const std::string& name) {
    const std::string text(pattern);
    const size_t slash = pattern.find('/') == std::string_view::npos ? name.rfind('/') : std::string::npos;
    return ::fnmatch(text.c_str(), slash == std::string::npos ? name.c_str() : name.c_str() + slash + 1, 0) == 0;
}

/// Reads the file of hints. A file of the user that cannot be read is reported, because its name may be misspelled.
void read_hint_file(comm::Info& info) {
    constexpr size_t kMost = 64 << 10;
    const char* const users = std::getenv("ROMIO_HINTS");
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(users ? users : "/etc/romio-hints", "re"), std::fclose);
    std::string text(file ? kMost : 0, '\0');
    if (file) text.resize(std::fread(text.data(), 1, kMost, file.get()));
    if (users && (!file || std::ferror(file.get()))) std::fprintf(stderr, "starling: ROMIO_HINTS: can't read %s: %m\n", users);
    read_hint_lines(text, info);
}

}  // namespace

void read_hint_lines(std::string_view text, comm::Info& info) {
    comm::Info hints;
    while (!text.empty()) {
        const std::string_view line = trimmed(cut(text, '\n'));
        const size_t key_end = line.find_first_of(kSpaces);
        if (line.empty() || line[0] == '#' || key_end == std::string_view::npos) continue;
        // ROMIO reads a file of hints in this way, too: the first line with a key is valid.
        const std::string_view key = line.substr(0, key_end);
        if (!hints.find(key)) set_hint(key, trimmed(line.substr(key_end)), hints);
    }
    for (const comm::Info::InfoEntry& hint : hints.entries) info.set(hint.key, hint.value);
}

void read_hint_patterns(std::string_view text, const std::string& name, comm::Info& info) {
    while (!text.empty()) {
        std::string_view rest = cut(text, ',');
        if (!fits(trimmed(cut(rest, ':')), name)) continue;
        while (!rest.empty()) {
            std::string_view value = cut(rest, ':');
            const std::string_view key = trimmed(cut(value, '='));
            set_hint(key, trimmed(value), info);
        }
    }
}

comm::Info gather_hints(const comm::Info& info, const std::string& name) {
    comm::Info all;
    if (const char* const driver = std::getenv("ROMIO_FSTYPE_FORCE")) set_hint("starling_file_driver", driver, all);
    read_hint_file(all);
    for (const comm::Info::InfoEntry& hint : info.entries) all.set(hint.key, hint.value);
    if (const char* const patterns = std::getenv("MPICH_MPIIO_HINTS")) read_hint_patterns(patterns, name, all);
    return all;
}

}  // namespace starling::file
