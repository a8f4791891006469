#include "launch/common/file_text.h"

#include <fcntl.h>
#include <unistd.h>

namespace starling::launch {

bool read_text(const std::string& path, std::string& out) {
    out.clear();
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char buffer[8 * 1024];
    ssize_t got;
    while ((got = ::read(fd, buffer, sizeof buffer)) > 0) out.append(buffer, static_cast<size_t>(got));
    close(fd);
    return got == 0;
}

std::string text_of_file(const std::string& path) {
    std::string text;
    read_text(path, text);
    return text;
}

}  // namespace starling::launch
