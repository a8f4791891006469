// The store of blocks (starling_keep.h) in runs that replace dead ranks: processes save, die, move the store or create it in a substitute,
// and fetch. A fetched block must be that of the version which all processes regard as the latest. It may be lost only if two processes
// have died since the store had all copies.
#include <algorithm>
#include <cinttypes>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon.h"
#include "player.h"

namespace starling::simulation {

namespace {

constexpr const char* kName = "field";
/// The longest block, in words.
constexpr size_t kMostWords = 400;

/// A save that has returned MPI_SUCCESS in a process. It counts as long as this process lives.
struct Save {
    const Process* process;
    long long version;
    uint32_t generation;
};
std::vector<Save> saves;
/// The generations in which processes have called the save of each version, whether or not it has succeeded.
std::map<long long, std::set<uint32_t>> tries;
/// A generation to which the store has moved: its size, and the processes in which the move has returned MPI_SUCCESS.
struct Move {
    int size = 0;
    std::vector<const Process*> done;
};
std::map<uint32_t, Move> moves;
/// Whether two processes have died since the store had all copies, and no save has succeeded since.
bool may_be_lost = false;
/// The generation that has saved this version, as a process has seen that fetched a block of it in the second generation.
std::map<std::pair<long long, uint32_t>, uint32_t> seen;

/// The words of an owner's block.
std::vector<uint64_t> block_of(long long version, uint32_t generation, int owner) {
    const uint64_t id = static_cast<uint64_t>(version) * 1000 + generation;
    std::vector<uint64_t> words(1 + word(id, static_cast<uint64_t>(owner)) % kMostWords);
    for (size_t i = 0; i < words.size(); ++i) words[i] = word(id, static_cast<uint64_t>(owner) << 32 | i);
    return words;
}

/// Returns how many members have died of the last generation before this one to which the store has moved. A move in which all that have
/// returned have died may have failed on the others. A member that died during the move never returned.
int64_t count_dead_keepers(uint32_t generation) {
    for (auto before = moves.lower_bound(generation); before != moves.begin();) {
        const auto& [size, done] = (--before)->second;
        const auto living = std::count_if(done.begin(), done.end(), [](const Process* one) { return !one->gone(); });
        if (living > 0) return size - living;
    }
    return 0;
}

}  // namespace

/// Returns whether a call of the store has succeeded. Otherwise it must have failed by a death.
bool Player::kept(int code, const char* what) {
    world()->note(what, me_, static_cast<uint64_t>(code));
    if (code == MPI_SUCCESS) return true;
    if (code != MPIX_ERR_PROC_FAILED && code != MPIX_ERR_REVOKED) fail_run("%s: class %d, %s", what, code, mpi_.keep_message());
    return false;
}

/// Moves the store to the communicator, or creates one there.
bool Player::begin_store(const Whole& whole) {
    process_.doing = "the store's move to generation " + std::to_string(whole.generation);
    const int code =
        store_ ? mpi_.keep_move(store_, whole.comm) : mpi_.keep_create(whole.comm, STARLING_KEEP_UNBOUNDED, &store_);
    if (!kept(code, "starling_keep_move")) return false;
    if (count_dead_keepers(whole.generation) >= 2) may_be_lost = true;
    Move& move = moves[whole.generation];
    move.size = whole.size;
    move.done.push_back(&process_);
    return true;
}

/// Fetches the latest blocks, checks them, and saves new ones.
bool Player::use_store(const Whole& whole) {
    process_.doing = "the store of generation " + std::to_string(whole.generation);
    long long version = 0;
    int owners = 0;
    ok(mpi_.keep_latest(store_, kName, &version, &owners), "starling_keep_latest");
    expect_alike("latest version of generation " + std::to_string(whole.generation),
                 std::to_string(version) + " of " + std::to_string(owners));
    for (const Save& save : saves)
        if (!save.process->gone() && save.version > version && !may_be_lost)
            fail_run("version %lld counts in generation %u, but the latest is %lld", save.version, save.generation, version);
    for (int turn = 0; version >= 0 && turn < 2; ++turn)
        if (!fetch_block(whole, (whole.rank + turn * 3 + 1) % owners, version)) return false;
    return save_blocks(whole, version == STARLING_KEEP_NONE ? 0 : version + 1);
}

bool Player::fetch_block(const Whole& whole, int owner, long long version) {
    std::vector<uint64_t> words(kMostWords);
    size_t bytes = words.size() * sizeof(uint64_t);
    long long found = version % 2 ? version : STARLING_KEEP_LATEST;
    const int code = mpi_.keep_fetch(store_, kName, owner, words.data(), &bytes, &found);
    if (code == STARLING_KEEP_LOST) {
        if (!may_be_lost) fail_run("starling_keep_fetch: %s, although at most one process has died", mpi_.keep_message());
        return true;
    }
    if (!kept(code, "starling_keep_fetch")) return false;
    if (found != version) fail_run("version %lld was fetched instead of %lld", found, version);
    words.resize(bytes / sizeof(uint64_t));
    for (const uint32_t generation : tries[version]) {
        if (words != block_of(version, generation, owner)) continue;
        const uint32_t known = seen.try_emplace({version, whole.generation}, generation).first->second;
        if (known != generation) fail_run("version %lld has blocks of generations %u and %u", version, known, generation);
        for (const Save& save : saves)
            if (!save.process->gone() && save.version == version && save.generation > generation)
                fail_run("version %lld is that of generation %u, although it was saved in generation %u", version, generation,
                         save.generation);
        return true;
    }
    fail_run("the block of owner %d, version %lld, of %zu bytes, is none that was saved", owner, version, bytes);
}

bool Player::save_blocks(const Whole& whole, long long version) {
    const uint64_t count = Random(mix(script_.seed ^ 0x5a7e) + whole.generation).between(1, 3);
    for (const long long end = version + static_cast<long long>(count); version < end; ++version) {
        tries[version].insert(whole.generation);
        const std::vector<uint64_t> words = block_of(version, whole.generation, whole.rank);
        const int code = mpi_.keep_save(store_, kName, words.data(), words.size() * sizeof(uint64_t), version);
        if (!kept(code, "starling_keep_save")) return false;
        saves.push_back({&process_, version, whole.generation});
        may_be_lost = false;
    }
    done().add(Feature::keep);
    return true;
}

}  // namespace starling::simulation
