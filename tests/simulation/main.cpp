// Simulations of whole jobs, each determined by its seed:
//
//   simulate --seed N [--trace] [--ranks R]     runs one, and describes it
//   simulate --seeds FROM-TO [--jobs J]         runs many, each in a separate process; reports the seeds that failed
//   simulate --twice FROM-TO                    runs each seed twice: both runs must be equal
//   simulate --large RANKS                      runs a job like real programs, and reports the resources of its connections
//   simulate --program NAME --costs FILE ...    runs an MPI program on a machine with known costs (program.h)
//   simulate --phased RANKS                     runs a job whose partners change and return, and reports the paths of its messages
//
// --reaches A,B+C: fails if one of these counters is 0 over all runs, or if no run used both of these features. --only A+B: runs only the
// seeds that drew both. --plain: runs the jobs as they were before seeds drew several jobs. --shares A=90,B=5: fails if a counter has less than this percentage of the messages between hosts.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "files.h"
#include "player.h"
#include "program.h"
#include "run_times.h"
#include "transport/network/crypto/cipher.h"
#include "transport/shm/region.h"

namespace starling::simulation {

namespace {

/// Limit of processor time for one seed, in seconds; most seeds take a hundredth of a second.
constexpr time_t kLongest = 120;

struct Options {
    std::string library, reaches, shares;
    uint64_t from = 0, to = 0;
    uint32_t ranks = 0;
    uint32_t most = UINT32_MAX;  ///< seeds with more processes than this are left out
    unsigned jobs = 1;
    Features only;
    bool one = false, trace = false, plain = false, twice = false, large = false, phased = false;
};

constexpr size_t kCounters = 96;  ///< largest number of counters

/// The result of a run, for the process that started it.
struct Result {
    uint64_t hash, virtual_ns, switches, datagrams, lost;
    uint32_t steps, ranks;
    uint64_t counted[kCounters];
    Features features;
};

/// Adds up the counters of all ranks' libraries (base/counters.def).
void add_counters(const Daemons& daemons, Result& result) {
    size_t count = 0;
    const Counter* const table = counter_table(count);
    for (const auto& job : daemons.jobs()) {
        for (uint32_t rank = 0; job && rank < job->host_of_rank.size(); ++rank) {
            const job::JobSegment& segment = job->segments[job->host_of_rank[rank]];
            const Counters& of_rank = *shm::SegmentRegion(segment.region(rank)).counters();
            for (size_t i = 0; i < count && i < kCounters; ++i) result.counted[i] += counter_value(table[i], of_rank);
        }
    }
}

/// Derives the features that a run used from its counters.
Features features_of(const Script& script, const uint64_t (&counted)[kCounters]) {
    static constexpr struct {
        const char* counter;
        Feature feature;
    } kCounted[] = {{"windows_made", Feature::windows},
                    {"group_messages", Feature::multicast},
                    {"group_turns", Feature::turns},
                    {"verbs_datagrams_sent", Feature::devices},
                    {"plans_started", Feature::persistent}};
    Features all = done();
    size_t count = 0;
    const Counter* const table = counter_table(count);
    for (size_t i = 0; i < count && i < kCounters; ++i)
        for (const auto& [counter, feature] : kCounted)
            if (counted[i] > 0 && std::strcmp(table[i].name, counter) == 0) all.add(feature);
    if (script.placement.encrypts) all.add(Feature::encryption);
    return all;
}

void apply(World& world, Daemons& daemons, Devices& devices, const Script& script) {
    for (const Fault& fault : script.faults) {
        if (fault.step != UINT32_MAX) continue;  // the player of the rank applies faults that are tied to a step
        if (fault.kind == Fault::Kind::death && fault.rank >= script.ranks) continue;  // from the start of the process on
        world.at(world.now + fault.at, [&, fault] {
            switch (fault.kind) {
                case Fault::Kind::rail_down:
                case Fault::Kind::rail_up: {
                    const bool up = fault.kind == Fault::Kind::rail_up;
                    network()->set_up(fault.host, fault.rail, up);
                    return devices.link_changed(fault.host, fault.rail, up);
                }
                case Fault::Kind::device_out:
                case Fault::Kind::device_in:
                    return devices.set_there(fault.host, fault.rail, fault.kind == Fault::Kind::device_in);
                case Fault::Kind::silent:
                    return network()->set_silent(fault.host, fault.rail, true);
                case Fault::Kind::heard:
                    return network()->set_silent(fault.host, fault.rail, false);
                case Fault::Kind::death:
                    for (const auto& process : world.processes())
                        if (process->number == fault.rank && !process->gone()) return daemons.kill(*process);
            }
        });
    }
}

/// Loads the cipher library before the world exists: all ranks share it, and its start draws real random numbers. It stays loaded.
void load_cipher() {
    std::unique_ptr<network::Cipher> none;
    if (network::Cipher::load(none) == 0) return;
    std::fprintf(stderr, "simulation: %.*s\n", static_cast<int>(failure_text().size()), failure_text().data());
    std::exit(2);
}

Script script_of(const Options& options, uint64_t seed) {
    if (options.phased) return Script::phased(options.ranks);
    return options.large ? Script::large(options.ranks) : Script(seed, options.ranks, options.plain);
}

void tell_most(const char* what, const std::vector<uint64_t>& of) {
    const auto [least, most] = std::minmax_element(of.begin(), of.end());
    std::printf("  %s: at most %" PRIu64 " in a process, at least %" PRIu64 ", %.1f on average\n", what, *most, *least,
                std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size()));
}

/// Prints the maxima over all ports that existed.
void send_ports(const Devices& devices) {
    std::vector<uint64_t> queues, memory, registered;
    for (const verbs::PortCounters& one : devices.most) {
        queues.push_back(one.queues);
        memory.push_back(one.queue_memory);
        registered.push_back(one.registered_bytes);
    }
    if (queues.empty()) return;
    tell_most("connections (RC)", queues);
    tell_most("bytes of queues", memory);
    tell_most("bytes registered", registered);
}

/// Keeps freed memory in the process. A run reuses it soon, and its process ends soon; the kernel would take pages back and zero others.
void keep_memory() {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
    mallopt(M_TOP_PAD, 4 << 20);
}

/// Runs one seed, in a process that simulates nothing else.
Result simulate(const Options& options, uint64_t seed) {
    const Script script = script_of(options, seed);
    setenv("SHMEM_SYMMETRIC_SIZE", "64M", 1);  // size of the address space only; all ranks share that of one process
    for (const auto& [name, value] : script.settings) setenv(name.c_str(), value.c_str(), 1);
    unsetenv("SYSFS_PATH");  // would redirect the path of the device files, which the world simulates (devices.cpp)
    if (options.one && !options.large && !options.phased)
        std::printf("seed %" PRIu64 ": %s\n", seed, script.describe().c_str());
    std::fflush(nullptr);
    if (script.placement.encrypts) load_cipher();
    begin_files(getpid());
    World world(seed);
    world.trace = options.trace;
    Network net(world, script.placement.hosts, script.rails, script.weather);
    Devices devices(world, script.devices);
    Daemons daemons(world, script.placement);
    std::vector<uint32_t> next_core(script.placement.hosts);
    const auto start = [&](uint32_t job, uint32_t rank, uint32_t number, uint32_t host) {
        const Library& mpi = library(options.library, number);
        Process& process = world.add_to_job(job, host, rank, number, [&script, &mpi, &daemons](Process& me) {
            Player(script, mpi, me).run();
            close_all_of(me);
            daemons.note_end(me);
        });
        process.copy_times = CopyTimes(seed, number);
        process.cpu = next_core[host]++ % script.placement.cores;
        const auto kill_after = [&](uint64_t ns) {
            world.at(world.now + ns, [&process, &daemons] {
                if (!process.gone()) daemons.kill(process);
            });
        };
        for (const Fault& fault : script.faults)
            if (fault.kind == Fault::Kind::death && fault.step == UINT32_MAX && fault.rank == number && job > 0)
                kill_after(fault.at);
        if (job <= script.placement.further.size()) return;
        const SubstituteDeath death = script.death_of_substitute(job, number);
        if (death.when == SubstituteDeath::When::after_start) kill_after(death.at);
    };
    for (uint32_t rank = 0; rank < script.ranks; ++rank) start(0, rank, rank, script.placement.host_of_rank[rank]);
    daemons.start_further([&](uint32_t job, uint32_t rank) {
        const FurtherJob& plan = daemons.further(job);
        start(job, rank, plan.first + rank, plan.host_of_rank[rank]);
    });
    apply(world, daemons, devices, script);
    if (const std::string trouble = world.run(); !trouble.empty()) fail_run("%s", trouble.c_str());
    if (const std::string left = unexpected_files(); !left.empty()) fail_run("files are left:%s", left.c_str());
    Result result{world.hash(), world.now, world.switches(),
                  net.sent,     net.lost,  static_cast<uint32_t>(script.steps.size()),
                  script.ranks, {},        {}};
    add_counters(daemons, result);
    result.features = features_of(script, result.counted);
    if (options.large) send_ports(devices);
    return result;
}

/// Runs seeds in sequence, each in a process that may crash.
class Runner {
  public:
    explicit Runner(const Options& options) : options_(options) {
        void* const memory =
            mmap(nullptr, sizeof(Result) * options.jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        results_ = static_cast<Result*>(memory);
        running_.assign(options.jobs, {});
    }

    int run() {
        const auto begin = std::chrono::steady_clock::now();
        // Small jobs first: each run inherits all copies of the library that are loaded, and their number determines its fork's time.
        uint32_t above = 0;
        for (const uint32_t most : {4u, 8u, 16u, UINT32_MAX}) {
            for (uint64_t seed = options_.from; seed <= options_.to; ++seed) start_if(seed, above, most);
            above = most;
        }
        while (count_ > 0) wait_for_one();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        std::printf("%" PRIu64 " runs, %zu failed; %.1f s, %.0f s simulated, %" PRIu64 " steps, %" PRIu64 " ranks, %" PRIu64
                    " datagrams, %" PRIu64 " of them lost, %" PRIu64 " switches, hash %016" PRIx64 "\n",
                    runs_, failed_.size(), took.count(), static_cast<double>(virtual_ns_) / 1e9, steps_, ranks_, datagrams_,
                    lost_, switches_, hash_);
        times_.print();
        tell_counters();
        tell_pairs();
        tell_shares();
        const bool reached = reached_all() && has_shares();
        std::sort(failed_.begin(), failed_.end());
        for (size_t i = 0; i < failed_.size() && i < 50; ++i) std::printf("failed: --seed %" PRIu64 "\n", failed_[i]);
        return failed_.empty() && reached ? 0 : 1;
    }

  private:
    struct Running {
        pid_t pid = 0;
        uint64_t seed = 0;
    };

    // Prints the sum of all counters: a path with count 0 was not tested.
    void tell_counters() const {
        size_t count = 0;
        const Counter* const table = counter_table(count);
        std::string text = "the ranks have counted";
        for (size_t i = 0; i < count && i < kCounters; ++i)
            if (table[i].kind == CounterKind::counter)
                text += std::string(i == 0 ? "" : ",") + " " + table[i].name + " " + std::to_string(counted_[i]);
        std::printf("%s\n", text.c_str());
    }

    /// Prints for each feature, and for each pair, how many runs used them.
    void tell_pairs() const {
        if (options_.one) return;
        std::printf("runs with\n");
        for (int row = 0; row < kFeatures; ++row) {
            std::printf("  %s:", name_of(static_cast<Feature>(row)));
            for (int column = row; column >= 0; --column) {
                Features pair;
                pair.add(static_cast<Feature>(row));
                pair.add(static_cast<Feature>(column));
                const char* const other = name_of(static_cast<Feature>(column));
                std::printf("%s%s %" PRIu64, column == row ? "" : ", +", column == row ? "" : other, runs_with(pair));
            }
            std::printf("\n");
        }
    }

    uint64_t runs_with(Features wanted) const {
        uint64_t count = 0;
        for (const auto& [features, runs] : runs_with_)
            if (features.has_all(wanted)) count += runs;
        return count;
    }

    uint64_t counted(std::string_view name) const {
        size_t count = 0;
        const Counter* const table = counter_table(count);
        const auto known = std::find_if(table, table + count, [&](const Counter& one) { return one.name == name; });
        const auto index = static_cast<size_t>(known - table);
        return index < std::min(count, kCounters) ? counted_[index] : 0;
    }

    /// Returns the percentage of the messages between hosts that the counter `way` has counted. Messages through RDMA rings are also
    /// counted as RC.
    double share(std::string_view way) const {
        uint64_t all = 0;
        for (const char* each : {"messages_udp", "messages_tcp", "messages_verbs", "messages_rc"}) all += counted(each);
        return all == 0 ? 0 : 100.0 * static_cast<double>(counted(way)) / static_cast<double>(all);
    }

    void tell_shares() const {
        if (!options_.phased) return;
        std::printf("messages between hosts:");
        for (const char* way : {"udp", "tcp", "verbs", "rc", "rc_ring"})
            std::printf(" %s %.1f %%", way, share(std::string("messages_") + way));
        std::printf("\n");
    }

    bool has_shares() const {
        bool all = true;
        for (size_t at = 0; at < options_.shares.size();) {
            const size_t end = std::min(options_.shares.find(',', at), options_.shares.size());
            const std::string one = options_.shares.substr(at, end - at), way = one.substr(0, one.find('='));
            const double least = std::atof(one.c_str() + std::min(way.size() + 1, one.size()));
            if (share(way) < least) std::fprintf(stderr, "the share of '%s' is %.1f %%\n", way.c_str(), share(way));
            all &= share(way) >= least;
            at = end + 1;
        }
        return all;
    }

    bool reached_all() const {
        bool all = true;
        for (size_t at = 0; at < options_.reaches.size();) {
            const size_t end = std::min(options_.reaches.find(',', at), options_.reaches.size());
            const std::string name = options_.reaches.substr(at, end - at);
            Features features;
            const bool reached = (Features::read(name, features) ? runs_with(features) : counted(name)) > 0;
            if (!reached) std::fprintf(stderr, "no run has reached '%s'\n", name.c_str());
            all &= reached;
            at = end + 1;
        }
        return all;
    }

    /// Starts the seed's runs if its job has more than `above` ranks and at most `most`.
    void start_if(uint64_t seed, uint32_t above, uint32_t most) {
        const Script script = script_of(options_, seed);
        if (script.processes() <= above || script.processes() > std::min(most, options_.most) ||
            !script.drawn().has_all(options_.only))
            return;
        for (int turn = 0; turn < (options_.twice ? 2 : 1); ++turn) {
            while (count_ == options_.jobs) wait_for_one();
            start(seed, script);
        }
    }

    void start(uint64_t seed, const Script& script) {
        // The child inherits the copies of the library that are already loaded.
        library(options_.library, script.copies() - 1);
        const auto slot = static_cast<size_t>(
            std::find_if(running_.begin(), running_.end(), [](const Running& r) { return r.pid == 0; }) - running_.begin());
        std::fflush(nullptr);
        const pid_t pid = fork();
        if (pid == 0) {
            keep_memory();
            // The limit is processor time, not the wall clock: a run on a busy machine, or one that is stopped for a while, does not hang.
            const itimerval longest{{}, {kLongest, 0}};
            setitimer(ITIMER_PROF, &longest, nullptr);
            results_[slot] = simulate(options_, seed);
            std::fflush(nullptr);
            _exit(0);
        }
        if (pid < 0) {
            std::perror("simulation: fork");
            std::exit(2);
        }
        running_[slot] = {pid, seed};
        ++count_;
    }

    void wait_for_one() {
        int status = 0;
        rusage used{};
        const pid_t pid = wait4(-1, &status, 0, &used);
        const auto at = std::find_if(running_.begin(), running_.end(), [pid](const Running& r) { return r.pid == pid; });
        if (pid < 0 || at == running_.end()) return;
        remove_folder(pid);
        times_.add(at->seed, used);
        end(*at, results_[at - running_.begin()], status);
        *at = {};
        --count_;
    }

    void end(const Running& of, const Result& result, int status) {
        ++runs_;
        if (status != 0) {
            failed_.push_back(of.seed);
            std::fprintf(stderr, "seed %" PRIu64 " failed%s; again: simulate --seed %" PRIu64 "\n", of.seed,
                         WIFSIGNALED(status) ? (std::string(" by signal ") + strsignal(WTERMSIG(status))).c_str() : "",
                         of.seed);
            return;
        }
        hash_ += mix(of.seed ^ mix(result.hash));  // a sum, because runs end in any order
        virtual_ns_ += result.virtual_ns, switches_ += result.switches, datagrams_ += result.datagrams, lost_ += result.lost;
        steps_ += result.steps, ranks_ += result.ranks;
        for (size_t i = 0; i < kCounters; ++i) counted_[i] += result.counted[i];
        ++runs_with_[result.features];
        if (!options_.twice) return;
        const auto [known, first] = hashes_.try_emplace(of.seed, result.hash);
        if (first || known->second == result.hash) return;
        failed_.push_back(of.seed);
        std::fprintf(stderr, "seed %" PRIu64 " differed in its second run\n", of.seed);
    }

    const Options& options_;
    Result* results_;
    std::vector<Running> running_;
    unsigned count_ = 0;
    std::vector<uint64_t> failed_;
    RunTimes times_;
    std::map<uint64_t, uint64_t> hashes_;
    uint64_t counted_[kCounters] = {};
    std::map<Features, uint64_t> runs_with_;
    uint64_t runs_ = 0, virtual_ns_ = 0, switches_ = 0, datagrams_ = 0, lost_ = 0, steps_ = 0, ranks_ = 0, hash_ = 0;
};

[[noreturn]] void explain() {
    std::fprintf(stderr,
                 "usage: simulate [--library FILE] --seed N [--trace] [--ranks R]\n"
                 "       simulate [--library FILE] --large RANKS\n"
                 "       simulate [--library FILE] [--shares COUNTER=PERCENT,...] --phased RANKS\n"
                 "       simulate [--library FILE] [--jobs J] [--plain] [--most RANKS] [--only FEATURE+FEATURE] [--reaches "
                 "COUNTER,FEATURE+FEATURE,...] "
                 "--seeds FROM-TO | --twice FROM-TO\n"
                 "       simulate --program NAME -n RANKS --costs FILE [OPTIONS] [-- ARGUMENTS]\n");
    std::exit(2);
}

/// Restarts the program so that all runs are alike: without address randomization, with room for the thread-local variables of all copies,
/// and with a heap of huge pages, which takes half of the page faults away. The loader and malloc read the variable at their start only.
void begin_anew(char** arguments) {
    constexpr const char* kName = "GLIBC_TUNABLES";
    constexpr const char* kRoom = "glibc.rtld.optional_static_tls=1500000:glibc.malloc.hugetlb=1";
    const char* const now = std::getenv(kName);
    if (now && std::strcmp(now, kRoom) == 0) return;
    setenv(kName, kRoom, 1);
    // Raises the limit of descriptors, because the file of each copy of the library stays open.
    rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    personality(ADDR_NO_RANDOMIZE);
    execv("/proc/self/exe", arguments);
    std::perror("simulation: to begin anew");
    std::exit(2);
}

bool wants_program(char** arguments) {
    for (; *arguments; ++arguments)
        if (std::strncmp(*arguments, "--program", std::strlen("--program")) == 0) return true;
    return false;
}

Options read_options(char** arguments) {
    Options options;
    options.library = STARLING_LIBRARY;
    for (++arguments; *arguments; ++arguments) {
        const std::string name = *arguments;
        if (name == "--trace" || name == "--plain") {
            (name == "--trace" ? options.trace : options.plain) = true;
            continue;
        }
        const char* const value = *++arguments;
        if (!value) explain();
        char* end = nullptr;
        const uint64_t number = std::strtoull(value, &end, 10);
        if (name == "--library") {
            options.library = value;
        } else if (name == "--ranks") {
            options.ranks = static_cast<uint32_t>(number);
        } else if (name == "--most") {
            options.most = static_cast<uint32_t>(number);
        } else if (name == "--large") {
            options.large = options.one = true;
            options.ranks = static_cast<uint32_t>(number);
        } else if (name == "--phased") {
            options.phased = options.one = true;
            options.ranks = static_cast<uint32_t>(number);
        } else if (name == "--reaches") {
            options.reaches = value;
        } else if (name == "--only") {
            if (!Features::read(value, options.only)) explain();
        } else if (name == "--shares") {
            options.shares = value;
        } else if (name == "--jobs") {
            options.jobs = static_cast<unsigned>(number);
        } else if (name == "--seed") {
            options.one = true;
            options.from = options.to = number;
        } else if ((name == "--seeds" || name == "--twice") && *end == '-') {
            options.twice = name == "--twice";
            options.from = number;
            options.to = std::strtoull(end + 1, nullptr, 10);
        } else {
            explain();
        }
    }
    if (options.jobs == 0 || (options.from == 0 && options.to == 0 && !options.one)) explain();
    return options;
}

}  // namespace

}  // namespace starling::simulation

int main(int count, char** arguments) {
    using namespace starling::simulation;
    begin_anew(arguments);
    if (wants_program(arguments)) {
        become_plugin(SIMULATED_PLUGIN);
        return run_program(read_program_run(count, arguments));
    }
    const Options options = read_options(arguments);
    become_plugin(SIMULATED_PLUGIN);
    return Runner(options).run();
}
