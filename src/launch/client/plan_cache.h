// The folder where mpiexec keeps what it needs of each application's last run (STARLING_PLAN=auto): $XDG_CACHE_HOME/starling/plans, or
// ~/.cache/starling/plans. The folder has mode 0700 and its files 0600. A folder or file that belongs to another user, that others may
// write, or that is a symbolic link is not used.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

class PlanCache {
  public:
    struct CacheEntry {
        std::string name;    ///< name of the file
        uint64_t bytes = 0;  ///< size of the file
        time_t written = 0;
    };
    static constexpr size_t kMostEntries = 200;
    static constexpr uint64_t kMostBytes = 64 << 20, kMostEntryBytes = 16 << 20;

    PlanCache() = default;
    PlanCache(const PlanCache&) = delete;
    PlanCache& operator=(const PlanCache&) = delete;
    ~PlanCache();

    /// Opens the folder; `make` creates it if it does not exist. Returns an empty string, or a sentence with the reason for the failure.
    std::string open(bool make);
    bool is_open() const { return folder_ >= 0; }
    const std::string& path() const { return path_; }

    /// Returns the text of an entry; nothing if there is none, it can't be trusted or it is too large.
    std::optional<std::string> read(const std::string& name) const;
    /// Replaces an entry in one step, and deletes the oldest entries above the limits. Returns an empty string, or a sentence with the
    /// reason for the failure.
    std::string write(const std::string& name, std::string_view text) const;
    /// Returns the entries, the newest first.
    std::vector<CacheEntry> list() const;
    /// Deletes an entry; returns whether it existed.
    bool remove(const std::string& name) const;

  private:
    void prune() const;

    int folder_ = -1;
    std::string path_;
};

/// Returns the name of the entry for a key: the application's name, made safe for a file, and the key's hash.
std::string entry_name(std::string_view application, std::string_view key);

}  // namespace starling::launch
