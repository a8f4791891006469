// A store: the blocks that this process keeps, the versions that count, and the communicators.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "keep/move_plan.h"
#include "mpi.h"

namespace starling::keep {

/// Memory with the bytes of one block.
class BlockMemory {
  public:
    BlockMemory() = default;
    /// Throws std::bad_alloc.
    explicit BlockMemory(size_t bytes);
    char* data() const { return memory.get(); }
    size_t size() const { return length; }

  private:
    struct Release {
        void operator()(char* block) const { std::free(block); }
    };
    std::unique_ptr<char, Release> memory;
    size_t length = 0;
};

/// One version of one name, as this process knows it.
struct KeptVersion {
    int64_t number = 0;
    int owners = 0;
    int own = -1;                       ///< the owner of the block that this process has saved; -1: it saved none
    std::map<int, BlockMemory> blocks;  ///< the blocks in this process, by owner
    std::vector<BlockKeepers> keepers;  ///< by owner

    size_t bytes() const;
};

/// Versions by name, the older first.
using VersionsByName = std::map<std::string, std::vector<KeptVersion>>;

/// A save whose agreement this process has not seen the end of. It has all memory that it needs to count.
struct StagedSave {
    /// Throws std::bad_alloc.
    explicit StagedSave(const std::string& name);
    KeptVersion version;
    VersionsByName entry;  ///< of the save's name only, with room for two versions, but none in it
};

/// An agreement that has begun. MPI writes into it, so it stays where it is.
struct PendingAgreement {
    int flag = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    std::optional<StagedSave> save;  ///< the version that counts if the agreement succeeds
};

}  // namespace starling::keep

struct starling_keep_store {
    MPI_Comm comm = MPI_COMM_NULL;  ///< the program's communicator, whose revocation ends calls
    MPI_Comm wire = MPI_COMM_NULL;  ///< the store's own communicator with the same processes
    int rank = 0, size = 0;
    std::vector<int> partners;  ///< by rank
    std::vector<int> wards;     ///< the ranks whose partner this process is
    size_t bound = 0;
    starling::keep::VersionsByName names;  ///< up to two versions of each name, which count
    starling::keep::PendingAgreement pending;
    bool is_closed = false;  ///< whether the last agreement on `wire` has ended

    /// Returns the bytes of all blocks in this process.
    size_t used() const;
    /// Returns the version, or the latest for STARLING_KEEP_LATEST; null if there is none.
    const starling::keep::KeptVersion* find(const std::string& name, int64_t version) const;
    /// Returns the latest version that counts of all names; null if there is none.
    const starling::keep::KeptVersion* find_common() const;
    /// Drops all versions of a name but the one to return to if the save of `version` fails. Returns the blocks of the dropped ones.
    std::vector<starling::keep::BlockMemory> make_room(const std::string& name, int64_t version);
    /// Returns the bytes that make_room() would free.
    size_t droppable(const std::string& name, int64_t version) const;
    /// Adds a version that counts, in place of those that are not older.
    void commit(starling::keep::StagedSave&& save) noexcept;
    /// Returns the keepers of the blocks that are saved now.
    std::vector<starling::keep::BlockKeepers> current_keepers() const;
};

namespace starling::keep {

using KeepStore = starling_keep_store;

}  // namespace starling::keep
