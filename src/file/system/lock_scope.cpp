#include "file/system/lock_scope.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <memory>
#include <string>

namespace starling::file {

namespace {

constexpr std::string_view kLocalLocks[] = {"nolock", "local_lock=all", "local_lock=posix", "localflock"};

/// Whether `word` is in the text, between `separator`s or the text's ends.
bool has_word(std::string_view text, std::string_view word, char separator) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
        const size_t end = at + word.size();
        if ((at == 0 || text[at - 1] == separator || text[at - 1] == ' ') &&
            (end == text.size() || text[end] == separator || text[end] == ' '))
            return true;
    }
    return false;
}

std::string all_mounts() {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/mountinfo", "re"), std::fclose);
    std::string text;
    char part[4096];
    while (file)
        if (const size_t bytes = std::fread(part, 1, sizeof part, file.get()))
            text.append(part, bytes);
        else
            break;
    return text;
}

}  // namespace

bool locks_end_at_host(std::string_view mounts, std::string_view number) {
    while (!mounts.empty()) {
        const std::string_view line = mounts.substr(0, mounts.find('\n'));
        mounts.remove_prefix(std::min(mounts.size(), line.size() + 1));
        // Fields: id, parent, number, root, mount point, options, ... - type, source, options of the file system.
        size_t field = line.find(' ');
        if (field != std::string_view::npos) field = line.find(' ', field + 1);
        if (field == std::string_view::npos || !line.substr(field + 1).starts_with(number)) continue;
        if (!line.substr(field + 1 + number.size()).starts_with(' ')) continue;
        for (const std::string_view option : kLocalLocks)
            if (has_word(line, option, ',')) return true;
    }
    return false;
}

bool locks_end_at_host(int descriptor) {
    struct stat status;
    if (::fstat(descriptor, &status) != 0) return false;
    return locks_end_at_host(all_mounts(), std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev)));
}

}  // namespace starling::file
