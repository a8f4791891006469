// One rank of a simulation: does its part of the script with the library, and compares the results with the model.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "library.h"
#include "script.h"

namespace starling::simulation {

/// Returns a word of the contents of message or contribution number `id`.
inline uint64_t word(uint64_t id, uint64_t index) {
    return (id + 1) * 0x9e3779b97f4a7c15ull ^ (index + 7) * 0xbf58476d1ce4e5b9ull;
}

/// Returns a word of one rank's contribution for another.
inline uint64_t part_of(const Step& step, int from, int to, uint32_t index) {
    return word(step.id, static_cast<uint64_t>(from) << 40 ^ static_cast<uint64_t>(to) << 20 ^ index);
}

const char* name_of(Collective kind);

/// Returns the names of files in the folder of this run that no file of MPI explains.
std::string unexpected_files();

class Player {
  public:
    Player(const Script& script, const Library& mpi, Process& process)
        : script_(script), mpi_(mpi), process_(process), me_(process.number), random_(mix(script.seed) + process.number) {}
    /// Runs from MPI_Init to the end of MPI_Finalize.
    void run();

  private:
    /// Errors that an operation may return: none; those of the death of a process that it involves; or, for collectives, also those of a
    /// failure elsewhere; or that of a child before the end of MPI_Init.
    enum class Allowed : uint8_t { nothing, death, anything, spawn_failure };
    /// An operation that was started and must be awaited: its buffers, and the check at its end.
    struct Pending {
        const Step* step;
        MPI_Request request = MPI_REQUEST_NULL;
        Allowed allowed = Allowed::nothing;
        bool persistent = false;
        bool strided = false;  ///< whether `in` is strided
        std::vector<char> out, in;
        std::function<void(Pending&, MPI_Status&)> check;
    };

    bool is_member(const Step& step) const;
    void play(const Step& step);
    void send(const Step& step, int to);
    void receive(const Step& step, int from);
    uint32_t room_for(const Step& step) const;
    void test_until_done(Pending& pending);
    void take(const Step& step, int source, int tag, Allowed allowed);
    void take_part_in_exchange(const Step& step);
    void cancel_send(const Step& step);
    void cancel_receive(const Step& step);
    void take_part(const Step& step);
    void start_collective(const Step& step, Pending& pending);
    /// The arguments of a collective. `data`: the one buffer of a broadcast.
    struct CollectiveArguments {
        char *out, *in, *data;
        int root;
        MPI_Comm comm;
        MPI_Request* request;
    };
    /// Calls the step's collective, blocking or not; returns its error code.
    int call_collective(const Step& step, const CollectiveArguments& with);
    void check_collective(const Step& step, Pending& pending);
    void start_prepared(const Step& step, Pending& pending, MPI_Comm comm);
    /// This rank's part in a collective of an inter-communicator: the numbers of the other group, its rank in its own, the root to pass.
    struct AcrossPart {
        const std::vector<uint32_t>& others;
        int rank, root;
    };
    AcrossPart across_part(const Step& step) const;
    void take_part_across(const Step& step);
    void start_across(const Step& step, int root, Pending& pending);
    void check_across(const Step& step, const Pending& pending);
    void split(const Step& step);
    void begin_mpi();
    void await_all();
    void check_place(MPI_Comm made, const Community& wanted);
    void find_parents(const ScriptJob& job);
    void keep_inter(const Step& step, MPI_Comm made);
    void spawn(const Step& step);
    void spawn_in_vain(const Step& step);
    void connect(const Step& step);
    void open_port(const Step& step, std::string& name);
    void find_port(const Step& step, std::string& name);
    void merge(const Step& step);
    void disconnect(const Step& step);
    std::vector<int> meet(const Step& step, int word);
    [[noreturn]] void die();
    void survive(const Step& step);
    /// The communicator that is replaced again and again, and the number of replacements that have made it.
    struct Whole {
        MPI_Comm comm;
        uint32_t generation;
        int size = 0, rank = 0;
    };
    void replace(const Step& step);
    void run_as_substitute();
    void continue_with(Whole whole);
    void take_place(Whole& whole, int wanted);
    void check_old_rank(const Whole& whole);
    void die_in_call();
    Whole replace_dead(const Whole& whole);
    Whole shrink(const Whole& whole);
    bool begin_store(const Whole& whole);
    bool use_store(const Whole& whole);
    bool fetch_block(const Whole& whole, int owner, long long version);
    bool save_blocks(const Whole& whole, long long version);
    bool kept(int code, const char* what);
    struct FileUse;
    void use_files(const Step& step);
    void begin_file_call(const std::string& what);
    bool works_in_spite_of_deaths(int code, const char* what);
    MPI_Info draw_hints(Random& random);
    bool open_file(FileUse& use);
    bool set_file_view(FileUse& use);
    int move_pieces(FileUse& use, int how, bool writes, int64_t at, std::vector<uint8_t>& data, MPI_Status& status);
    bool access_pieces(FileUse& use, int call);
    bool write_records(FileUse& use);
    bool call_on_file(FileUse& use, uint64_t what);
    void use_file(FileUse& use);
    void check_unopened(const FileUse& use);
    bool await_members(const FileUse& use);
    void expect_alike(const std::string& call, const std::string& result);
    bool works(const Whole& whole);
    bool all_are_content(const Whole& whole, bool content);
    void revoke_window(const Step& step, MPI_Comm living, int rank);
    int wait_for_revocation(int what, MPI_Win win, MPI_Group all);
    void expect_class(int code, const char* what, std::initializer_list<int> classes);
    struct WindowUse;
    void use_window(const Step& step);
    Allowed for_all_of_window() const;
    bool make_window(const Step& step, WindowUse& use);
    bool all_have_made(const Step& step, WindowUse& use, bool made);
    void hear_of_deaths(const Step& step, WindowUse& use, uint32_t last_epoch);
    void apply(WindowUse& use, uint32_t epoch);
    void in_epoch(WindowUse& use, int code, const char* what);
    void play_epoch(const Step& step, WindowUse& use, int kind, bool closes_by_flush);
    void act_on_window(const Step& step, WindowUse& use, int target_lock);
    void check_window(const Step& step, WindowUse& use, uint32_t epoch, const char* name);
    struct SymmetricUse;
    void begin_symmetric();
    void good(int code, const char* what);
    void end_symmetric();
    void use_symmetric(const Step& step);
    void act_on_symmetric(SymmetricUse& use);
    void wait_for_signals(SymmetricUse& use);
    void use_team(const Step& step, SymmetricUse& use);
    void compare(const Step& step, const std::vector<char>& in, const MPI_Status& status, int source);
    void check_crowd(const Step& step, const std::vector<char>& in, const MPI_Status& status);
    void check_crowds();

    MPI_Datatype strided_type(uint32_t bytes);
    std::vector<char> received(const Pending& pending) const;

    Pending& begin(const Step& step);
    void keep_or_wait(const Step& step);
    void wait(Pending& pending);
    void finish(Pending& pending, MPI_Status& status);
    std::vector<MPI_Request> all_pending();
    void wait_for_any();
    void wait_for_all_at_once();
    void wait_for_some();
    void wait_for_all();
    /// Returns false if the call failed in an allowed way.
    bool ok(int code, const char* what, Allowed allowed = Allowed::nothing);
    Allowed with(const Step& step, int rank) const;
    Allowed with(const std::vector<uint32_t>& group, int rank) const;
    Allowed with_receiver(const Step& step, int rank) const;
    MPI_Comm comm(const Step& step) const { return comms_[step.comm]; }

    const Script& script_;
    const Library& mpi_;
    Process& process_;
    const uint32_t me_;  ///< number of the process among those of all jobs
    Random random_;
    std::vector<MPI_Comm> comms_;
    starling_keep store_ = nullptr;  ///< null: this process has no store
    uint32_t file_calls_ = 0;        ///< calls on files so far
    uint32_t replacements_ = 0;      ///< calls of MPIX_Comm_replace so far
    bool symmetric_ = false;         ///< whether OpenSHMEM is initialized
    std::deque<Pending> pending_;
    std::map<uint32_t, std::map<uint32_t, uint32_t>> crowds_;  ///< received steps of each crowd, by index within the crowd
};

}  // namespace starling::simulation
