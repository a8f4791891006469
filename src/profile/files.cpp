#include "profile/files.h"

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.h"
#include "base/current_function.h"
#include "base/state.h"
#include "profile/call_site.h"
#include "profile/traffic.h"

namespace starling::profile {

namespace {

/// A row of the table; `file` points to one of `names`.
struct FileKey {
    const void* site;
    const char* function;
    const std::string* file;
    bool operator==(const FileKey&) const = default;
};
struct FileKeyHash {
    size_t operator()(const FileKey& key) const {
        const std::hash<const void*> hash;
        return (hash(key.site) * 31 + hash(key.function)) * 31 + hash(key.file);
    }
};
struct FileNameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
};
STARLING_STATE Lazy<std::unordered_map<FileKey, FileSum, FileKeyHash>> files;
STARLING_STATE Lazy<std::unordered_set<std::string, FileNameHash, std::equal_to<>>> names;

const std::string& name_of_file(std::string_view file) {
    auto& known = names.get();
    if (const auto found = known.find(file); found != known.end()) return *found;
    return *known.emplace(known.size() < kNamedFiles ? file : kOtherFiles).first;
}

}  // namespace

void FileCall::begin_measured() {
    if (!counting()) return;
    site_ = call_site();
    function_ = calling;
    began_ = now_ns();
}

void FileCall::count(std::string_view file, int64_t bytes) {
    const std::string& name = name_of_file(file);
    FileSum& sum = files.get().try_emplace({site_, function_, &name}, FileSum{site_, function_, &name}).first->second;
    ++sum.calls;
    sum.bytes += static_cast<uint64_t>(bytes);
    sum.ns += now_ns() - began_;
    began_ = 0;
}

void each_file(void (*visit)(const FileSum& sum, void* argument), void* argument) {
    for (const auto& [key, sum] : files.get()) visit(sum, argument);
}

void clear_files() {
    if (names.get().empty()) return;
    files.get().clear();
    names.get().clear();
}

}  // namespace starling::profile
