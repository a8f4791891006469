#include "launch/client/plan_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <utility>

#include "base/hash.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr const char* kEnding = ".json";
constexpr const char* kUnfinished = ".new-";  ///< beginning of the names of files that are being written
constexpr time_t kAbandoned = 3600;           ///< age, s, from which such a file is left over from a process that was killed

/// Returns the user's cache folder; empty if none is known.
std::string cache_home() {
    const char* const told = std::getenv("XDG_CACHE_HOME");
    if (told && told[0] == '/') return told;
    const char* const home = std::getenv("HOME");
    return home && home[0] == '/' ? std::string(home) + "/.cache" : std::string();
}

/// Returns whether only this user can change a file or folder.
bool is_own(const struct stat& status) { return status.st_uid == geteuid() && (status.st_mode & 022) == 0; }

/// Opens a folder in another one, and creates it if `make`. Returns -1 with errno if it is not only this user's.
int open_own(int above, const char* name, bool make) {
    if (make) mkdirat(above, name, 0700);
    const int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || (fstat(fd, &status) == 0 && is_own(status))) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

bool is_entry(std::string_view name) { return !name.starts_with('.') && name.ends_with(kEnding); }

bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
}

}  // namespace

PlanCache::~PlanCache() {
    if (folder_ >= 0) ::close(folder_);
}

std::string PlanCache::open(bool make) {
    const std::string home = cache_home();
    if (home.empty()) return "there is no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path";
    path_ = home + "/starling/plans";
    if (make) mkdir(home.c_str(), 0700);
    // The user may have made a link of the cache folder itself, such as to a local disk.
    const int above = ::open(home.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int own = above >= 0 ? open_own(above, "starling", make) : -1;
    folder_ = own >= 0 ? open_own(own, "plans", make) : -1;
    const int error = errno;
    if (own >= 0) ::close(own);
    if (above >= 0) ::close(above);
    if (folder_ >= 0) return {};
    const char* const why = error == EPERM                       ? "it belongs to another user, or others may write to it"
                            : error == ELOOP || error == ENOTDIR ? "it is a link or not a folder"
                                                                 : std::strerror(error);
    return "the folder " + path_ + " can't be used: " + why;
}

std::optional<std::string> PlanCache::read(const std::string& name) const {
    if (folder_ < 0 || name.find('/') != std::string::npos) return std::nullopt;
    const int fd = openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    struct stat status;
    std::optional<std::string> text;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && is_own(status) &&
        static_cast<uint64_t>(status.st_size) <= kMostEntryBytes) {
        text.emplace(static_cast<size_t>(status.st_size), '\0');
        size_t got = 0;
        for (ssize_t n; got < text->size() && (n = ::read(fd, text->data() + got, text->size() - got)) > 0;)
            got += static_cast<size_t>(n);
        text->resize(got);
    }
    ::close(fd);
    return text;
}

std::string PlanCache::write(const std::string& name, std::string_view text) const {
    if (folder_ < 0) return "the cache is not open";
    if (text.size() > kMostEntryBytes) return "the run's traffic has more than " + number_of(kMostEntryBytes, "byte");
    rlimit longest{};
    if (getrlimit(RLIMIT_FSIZE, &longest) == 0 && text.size() > longest.rlim_cur)
        return "the limit of file sizes (ulimit -f) is less than " + number_of(text.size(), "byte");
    // Hosts and containers that share the folder may have equal process ids.
    const std::string unfinished = kUnfinished + std::to_string(getpid()) + "-" + std::to_string(std::random_device()());
    unlinkat(folder_, unfinished.c_str(), 0);
    const int fd = openat(folder_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    const bool written = fd >= 0 && write_all(fd, text);
    const bool closed = fd >= 0 && ::close(fd) == 0;
    if (written && closed && renameat(folder_, unfinished.c_str(), folder_, name.c_str()) == 0) {
        prune();
        return {};
    }
    const int error = errno;
    unlinkat(folder_, unfinished.c_str(), 0);
    return "the file " + path_ + "/" + name + " can't be written: " + std::strerror(error);
}

std::vector<PlanCache::CacheEntry> PlanCache::list() const {
    std::vector<CacheEntry> entries;
    const int again = folder_ >= 0 ? openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const std::unique_ptr<DIR, int (*)(DIR*)> all(again >= 0 ? fdopendir(again) : nullptr, closedir);
    if (!all) {
        if (again >= 0) ::close(again);
        return entries;
    }
    while (const dirent* const one = readdir(all.get())) {
        struct stat status;
        if (fstatat(folder_, one->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
        const bool abandoned =
            std::string_view(one->d_name).starts_with(kUnfinished) && status.st_mtime + kAbandoned < time(nullptr);
        if (abandoned) unlinkat(folder_, one->d_name, 0);
        if (is_entry(one->d_name)) entries.push_back({one->d_name, static_cast<uint64_t>(status.st_size), status.st_mtime});
    }
    std::sort(entries.begin(), entries.end(), [](const CacheEntry& one, const CacheEntry& other) {
        return std::pair(other.written, other.name) < std::pair(one.written, one.name);
    });
    return entries;
}

bool PlanCache::remove(const std::string& name) const {
    return folder_ >= 0 && is_entry(name) && name.find('/') == std::string::npos && unlinkat(folder_, name.c_str(), 0) == 0;
}

// Several mpiexecs may prune at once; each deletes at most the same entries.
void PlanCache::prune() const {
    uint64_t bytes = 0;
    size_t entries = 0;
    for (const CacheEntry& entry : list()) {
        bytes += entry.bytes;
        if (++entries > kMostEntries || bytes > kMostBytes) remove(entry.name);
    }
}

std::string entry_name(std::string_view application, std::string_view key) {
    constexpr size_t kMostName = 60;
    std::string name;
    for (const char c : application.substr(0, kMostName))
        name += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ? c : '_';
    char hash[20];
    std::snprintf(hash, sizeof hash, "-%016llx", static_cast<unsigned long long>(hash_on(kEmptyHash, key)));
    return name + hash + kEnding;
}

}  // namespace starling::launch
