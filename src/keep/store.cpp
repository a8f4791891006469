#include "keep/store.h"

#include <algorithm>
#include <new>
#include <utility>

using starling::keep::BlockKeepers;
using starling::keep::BlockMemory;
using starling::keep::KeptVersion;
using starling::keep::StagedSave;

starling::keep::BlockMemory::BlockMemory(size_t bytes) : length(bytes) {
    if (!bytes) return;
    memory.reset(static_cast<char*>(std::malloc(bytes)));
    if (!memory) throw std::bad_alloc();
}

StagedSave::StagedSave(const std::string& name) { entry[name].reserve(2); }

namespace {

/// Returns which of two versions is not needed if the save of `version` fails.
size_t unneeded_of(const std::vector<KeptVersion>& versions, int64_t version) {
    // The program goes back if the latest version is not older: then the version before it is the one to return to.
    return versions.back().number < version ? 0 : versions.size() - 1;
}

}  // namespace

size_t KeptVersion::bytes() const {
    size_t sum = 0;
    for (const auto& [owner, block] : blocks) sum += block.size();
    return sum;
}

size_t starling_keep_store::used() const {
    size_t sum = 0;
    for (const auto& [name, versions] : names)
        for (const KeptVersion& version : versions) sum += version.bytes();
    return sum;
}

const KeptVersion* starling_keep_store::find(const std::string& name, int64_t version) const {
    const auto found = names.find(name);
    if (found == names.end() || found->second.empty()) return nullptr;
    const std::vector<KeptVersion>& versions = found->second;
    if (version == STARLING_KEEP_LATEST) return &versions.back();
    const auto match =
        std::find_if(versions.begin(), versions.end(), [&](const KeptVersion& v) { return v.number == version; });
    return match == versions.end() ? nullptr : &*match;
}

const KeptVersion* starling_keep_store::find_common() const {
    const KeptVersion* latest = nullptr;
    if (names.empty()) return latest;
    for (const KeptVersion& version : names.begin()->second)
        if (std::all_of(names.begin(), names.end(), [&](const auto& other) { return find(other.first, version.number); }))
            latest = &version;
    return latest;
}

size_t starling_keep_store::droppable(const std::string& name, int64_t version) const {
    const auto found = names.find(name);
    if (found == names.end() || found->second.size() < 2) return 0;
    return found->second[unneeded_of(found->second, version)].bytes();
}

std::vector<BlockMemory> starling_keep_store::make_room(const std::string& name, int64_t version) {
    std::vector<BlockMemory> dropped;
    const auto found = names.find(name);
    if (found == names.end() || found->second.size() < 2) return dropped;
    std::vector<KeptVersion>& versions = found->second;
    const size_t unneeded = unneeded_of(versions, version);
    dropped.reserve(versions[unneeded].blocks.size());
    for (auto& [owner, block] : versions[unneeded].blocks) dropped.push_back(std::move(block));
    versions.erase(versions.begin() + static_cast<std::ptrdiff_t>(unneeded));
    return dropped;
}

void starling_keep_store::commit(StagedSave&& save) noexcept {
    auto& [name, versions] = *save.entry.begin();
    const auto found = names.find(name);
    // After make_room() there is at most one version besides the new one.
    if (found != names.end())
        for (KeptVersion& version : found->second)
            if (version.number < save.version.number) versions.push_back(std::move(version));
    versions.push_back(std::move(save.version));
    if (found != names.end())
        found->second.swap(versions);
    else
        names.merge(save.entry);
}

std::vector<BlockKeepers> starling_keep_store::current_keepers() const {
    std::vector<BlockKeepers> keepers(size);
    for (int rank = 0; rank < size; ++rank) keepers[rank] = {rank, partners[rank]};
    return keepers;
}
