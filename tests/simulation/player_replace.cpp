// The last step of some runs in which ranks die: the survivors replace the dead ranks of the world by MPIX_Comm_replace, again and again while
// survivors and substitutes die. Each call must succeed on all living processes or fail on all. A new communicator must have the old size
// and ranks, and must work.
#include <array>
#include <map>
#include <string>
#include <vector>

#include "daemon.h"
#include "player.h"

namespace starling::simulation {

namespace {

/// More calls in a row than this never fail: each failure needs a death.
constexpr uint32_t kMostAttempts = 40;
constexpr int kRingTag = 100'002;

/// A result that all living processes must get alike.
struct Outcome {
    const Process* process;
    const Process* spawner;  ///< the process that has started this substitute; null: none
    std::string text;
    /// Whether the process must agree with all others. Those that have died may have got other results, and may have started substitutes for
    /// a replacement in which the survivors take no part.
    bool counts() const { return !process->gone() && !(spawner && spawner->gone()); }
};

/// The model: all results so far, by the call, and the members of each communicator, by its generation. One memory for all processes.
std::map<std::string, std::vector<Outcome>> outcomes;
std::map<uint32_t, std::map<int, const Process*>> members;
std::map<uint32_t, int> sizes;

std::string name_of_call(uint32_t generation, uint32_t attempt) {
    return "replacement " + std::to_string(generation) + ", attempt " + std::to_string(attempt);
}

}  // namespace

/// Compares the result of this call with those of all others that still live. A process that has died may have got another one.
void Player::expect_alike(const std::string& call, const std::string& result) {
    std::vector<Outcome>& known = outcomes[call];
    const Outcome mine{&process_, daemons()->jobs()[process_.job]->spawner, result};
    for (const Outcome& other : known)
        if (mine.counts() && other.counts() && other.text != result)
            fail_run("%s: '%s', but process %u has got '%s'", call.c_str(), result.c_str(), other.process->number,
                     other.text.c_str());
    known.push_back(mine);
}

/// Checks and stores the place in a new communicator. Its size must be `wanted`, and the same on all members.
void Player::take_place(Whole& whole, int wanted) {
    ok(mpi_.Comm_set_errhandler(whole.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    int rank = -1, size = -1;
    ok(mpi_.Comm_rank(whole.comm, &rank), "MPI_Comm_rank");
    ok(mpi_.Comm_size(whole.comm, &size), "MPI_Comm_size");
    const auto known = sizes.try_emplace(whole.generation, wanted);
    wanted = known.first->second;
    if (size != wanted) fail_run("generation %u has %d members instead of %d", whole.generation, size, wanted);
    const Process*& mine = members[whole.generation][rank];
    if (mine && !mine->gone())
        fail_run("processes %u and %u of generation %u both have rank %d", mine->number, me_, whole.generation, rank);
    mine = &process_;
    whole.rank = rank;
    whole.size = size;
}

/// Checks that a survivor has its old rank, and that a substitute has that of a dead process.
void Player::check_old_rank(const Whole& whole) {
    const int rank = whole.rank;
    const std::map<int, const Process*>& before = members[whole.generation - 1];
    const auto held = before.find(rank);
    if (held != before.end() && held->second != &process_ && !held->second->gone())
        fail_run("process %u of generation %u has rank %d, whose process lives", me_, whole.generation, rank);
    for (const auto& [old, process] : before)
        if (process == &process_ && old != rank) fail_run("rank %d of generation %u had rank %d", rank, whole.generation, old);
}

/// Uses the communicator. Returns false if a call has failed: then a process must have died.
bool Player::works(const Whole& whole) {
    process_.doing = "the use of generation " + std::to_string(whole.generation);
    uint64_t mine = word(whole.generation, static_cast<uint64_t>(whole.rank)), sum = 0, wanted = 0, got = 0;
    for (int rank = 0; rank < whole.size; ++rank) wanted += word(whole.generation, static_cast<uint64_t>(rank));
    int code = mpi_.Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, whole.comm);
    expect_class(code, "MPI_Allreduce", {MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED});
    if (code != MPI_SUCCESS) return false;
    if (sum != wanted) fail_run("the sum over generation %u is wrong", whole.generation);
    const int next = (whole.rank + 1) % whole.size, before = (whole.rank + whole.size - 1) % whole.size;
    code = mpi_.Sendrecv(&mine, 1, MPI_UINT64_T, next, kRingTag, &got, 1, MPI_UINT64_T, before, kRingTag, whole.comm,
                         MPI_STATUS_IGNORE);
    expect_class(code, "MPI_Sendrecv", {MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED});
    if (code == MPI_SUCCESS && got != word(whole.generation, static_cast<uint64_t>(before)))
        fail_run("the message from rank %d of generation %u is wrong", before, whole.generation);
    return code == MPI_SUCCESS;
}

/// Returns whether all members live and are content. The result is the same on all living members.
bool Player::all_are_content(const Whole& whole, bool content) {
    process_.doing = "the agreement of generation " + std::to_string(whole.generation);
    int flag = content;
    const int code = mpi_.Comm_agree(whole.comm, &flag);
    expect_class(code, "MPI_Comm_agree", {MPIX_ERR_PROC_FAILED});
    if (flag && !content) fail_run("the agreed flag of generation %u lacks this rank's", whole.generation);
    const bool good = code == MPI_SUCCESS && flag;
    expect_alike("agreement of generation " + std::to_string(whole.generation), good ? "good" : "bad");
    return good;
}

/// Schedules this process's death if it is to die in this call of MPIX_Comm_replace.
void Player::die_in_call() {
    ++replacements_;
    const auto die_after = [this](uint64_t ns) {
        world()->at(world()->now + ns, [&process = process_] {
            if (!process.gone()) daemons()->kill(process);
        });
    };
    for (const Fault& fault : script_.faults)
        if (fault.rank == me_ && fault.kind == Fault::Kind::death && fault.call == replacements_) die_after(fault.at);
    if (replacements_ > 1 || process_.job <= script_.placement.further.size()) return;
    const SubstituteDeath death = script_.death_of_substitute(process_.job, me_);
    if (death.when == SubstituteDeath::When::before_call) die();
    if (death.when == SubstituteDeath::When::in_call) die_after(death.at);
}

/// Calls MPIX_Comm_replace until it succeeds. The substitutes learn from their arguments which call has started them.
Player::Whole Player::replace_dead(const Whole& whole) {
    for (uint32_t attempt = 0; attempt < kMostAttempts; ++attempt) {
        process_.doing = name_of_call(whole.generation, attempt);
        std::string generation = std::to_string(whole.generation), number = std::to_string(attempt);
        std::array<char*, 3> arguments = {generation.data(), number.data(), nullptr};
        die_in_call();
        Whole made{MPI_COMM_NULL, whole.generation + 1};
        const int code = mpi_.Comm_replace(whole.comm, Daemons::kSubstitute, arguments.data(), MPI_INFO_NULL, &made.comm);
        expect_class(code, "MPIX_Comm_replace", {MPIX_ERR_PROC_FAILED, MPI_ERR_SPAWN});
        if ((code == MPI_SUCCESS) != (made.comm != MPI_COMM_NULL)) fail_run("a failed replacement has made a communicator");
        expect_alike(name_of_call(whole.generation, attempt), code == MPI_SUCCESS ? "success" : "failure");
        if (code != MPI_SUCCESS) continue;
        take_place(made, whole.size);
        check_old_rank(made);
        return made;
    }
    fail_run("%u replacements in a row have failed", kMostAttempts);
}

/// Continues without the dead members.
Player::Whole Player::shrink(const Whole& whole) {
    process_.doing = "the shrink of generation " + std::to_string(whole.generation);
    Whole made{MPI_COMM_NULL, whole.generation + 1};
    ok(mpi_.Comm_shrink(whole.comm, &made.comm), "MPI_Comm_shrink");
    int size = 0;
    ok(mpi_.Comm_size(made.comm, &size), "MPI_Comm_size");
    take_place(made, size);
    if (made.size > whole.size || made.rank > whole.rank)
        fail_run("rank %d of %d has become rank %d of %d", whole.rank, whole.size, made.rank, made.size);
    return made;
}

/// Uses the communicator and replaces its dead members, until one of the last generations has none.
void Player::continue_with(Whole whole) {
    const Step& step = script_.steps.back();
    for (;;) {
        // A process that has no store yet creates one when the others move theirs. All do this, whatever has failed before.
        bool good = !script_.keeps || begin_store(whole);
        good = good && works(whole) && (!script_.keeps || use_store(whole));
        // Others may wait for this rank in a call that it does not make.
        if (!good) ok(mpi_.Comm_revoke(whole.comm), "MPI_Comm_revoke");
        if (all_are_content(whole, good) && whole.generation >= step.count) break;
        const bool shrinks = script_.keeps && Random(mix(script_.seed ^ 0x5417) + whole.generation).one_in(3);
        const Whole made = shrinks ? shrink(whole) : replace_dead(whole);
        if (whole.comm != MPI_COMM_WORLD) ok(mpi_.Comm_free(&whole.comm), "MPI_Comm_free");
        whole = made;
    }
    if (process_.job > script_.placement.further.size()) done().add(Feature::replace);
    if (store_) ok(mpi_.keep_free(&store_), "starling_keep_free");
    if (whole.comm != MPI_COMM_WORLD) ok(mpi_.Comm_free(&whole.comm), "MPI_Comm_free");
}

void Player::replace(const Step& step) {
    wait_for_all();
    // When this agreement ends, all living ranks have done their steps, so a revocation harms none.
    int flag = 1;
    expect_class(mpi_.Comm_agree(comm(step), &flag), "MPI_Comm_agree", {MPIX_ERR_PROC_FAILED});
    Whole whole{comm(step), 0};
    take_place(whole, static_cast<int>(script_.ranks));
    continue_with(whole);
}

/// Runs a process that a replacement has started.
void Player::run_as_substitute() {
    process_.doing = "MPI_Init of a substitute";
    ok(mpi_.Init(nullptr, nullptr), "MPI_Init");
    ok(mpi_.Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    MPI_Comm parents = MPI_COMM_NULL;
    ok(mpi_.Comm_get_parent(&parents), "MPI_Comm_get_parent");
    if (parents == MPI_COMM_NULL) fail_run("a substitute has no communicator with its parents");
    ok(mpi_.Comm_set_errhandler(parents, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    process_.doing = "the call of a substitute";
    die_in_call();
    const std::vector<std::string>& arguments = daemons()->jobs()[process_.job]->arguments;
    const auto generation = static_cast<uint32_t>(std::stoul(arguments[1])),
               attempt = static_cast<uint32_t>(std::stoul(arguments[2]));
    Whole whole{MPI_COMM_NULL, generation + 1};
    const int code = mpi_.Comm_replace(MPI_COMM_NULL, nullptr, MPI_ARGV_NULL, MPI_INFO_NULL, &whole.comm);
    expect_class(code, "a substitute's MPIX_Comm_replace", {MPIX_ERR_PROC_FAILED});
    expect_alike(name_of_call(generation, attempt), code == MPI_SUCCESS ? "success" : "failure");
    if (code == MPI_SUCCESS) {
        take_place(whole, sizes[generation]);
        check_old_rank(whole);
        continue_with(whole);
    }
    process_.doing = "MPI_Finalize of a substitute";
    ok(mpi_.Finalize(), "MPI_Finalize");
}

}  // namespace starling::simulation
