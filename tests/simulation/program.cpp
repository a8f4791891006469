#include "program.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "costs.h"
#include "daemon.h"
#include "devices.h"
#include "launch/client/plan_file.h"
#include "library.h"
#include "meter.h"
#include "network.h"
#include "transport/shm/region.h"
#include "world.h"

extern char** environ;

namespace starling::simulation {

namespace {

using Json = nlohmann::ordered_json;

/// Longest time for which a rank skips polls. The library's timers are checked by polls, so it is short.
constexpr uint64_t kSkipNs = 1'000;

[[noreturn]] void refuse(const std::string& sentence) {
    std::fprintf(stderr, "simulate: %s\n", sentence.c_str());
    std::exit(2);
}

/// Gives the ranks the variables of the run, and none that happen to be set here.
void set_environment(const ProgramRun& run) {
    std::vector<std::string> set_here;
    for (char** each = environ; *each; ++each)
        if (const std::string one = *each; one.starts_with("STARLING_") || one.starts_with("SHMEM_"))
            set_here.push_back(one.substr(0, one.find('=')));
    for (const std::string& name : set_here) unsetenv(name.c_str());
    unsetenv("SYSFS_PATH");
    for (const auto& [name, value] : {std::pair{"STARLING_CONFIG", "none"},
                                      {"STARLING_PMI", "none"},
                                      {"STARLING_RMA_THREAD", "off"},
                                      {"SHMEM_SYMMETRIC_SIZE", "64M"}})
        setenv(name, value, 1);
    for (const auto& [name, value] : run.environment) setenv(name.c_str(), value.c_str(), 1);
}

/// Adds the plan's part of each rank to the placement, and its variables to the run's.
void read_plan(ProgramRun& run, Placement& placement) {
    if (run.plan.empty()) return;
    std::vector<launch::Program> programs(1);
    programs[0].argv = {std::filesystem::path(run.program).filename().string()};
    programs[0].count = run.ranks;
    launch::Plan plan;
    if (const std::string error = launch::read_plan(run.plan, programs, plan); !error.empty()) refuse(error);
    for (uint32_t rank = 0; rank < run.ranks; ++rank) placement.given_plans.push_back(encode(plan.part_of(rank)));
    plan.put_into(run.environment);
}

Placement placement_of(const ProgramRun& run) {
    Placement all;
    all.hosts = run.hosts;
    all.cores = static_cast<uint32_t>(prices().of.processor_cores);
    const uint32_t per_host = (run.ranks + run.hosts - 1) / run.hosts;
    for (uint32_t rank = 0; rank < run.ranks; ++rank) all.host_of_rank.push_back(rank / per_host);
    return all;
}

Weather weather_of(const Prices& of) {
    Weather all;
    all.loss = of.of.adapter_loss;
    all.latency_ns = of.of.udp_latency;
    all.late_ns = 0;
    all.mtu = static_cast<uint32_t>(of.of.adapter_packet);
    return all;
}

DeviceWeather devices_of(const Prices& of, uint32_t hosts) {
    DeviceWeather all;
    if (!of.has_devices) return all;
    all.fitted.assign(hosts, true);
    all.mtu = static_cast<uint32_t>(of.of.ud_payload);
    all.frame = static_cast<uint32_t>(of.of.rc_frame);
    all.receives = static_cast<uint32_t>(of.of.ud_receives);
    all.sends = static_cast<uint32_t>(of.of.ud_sends);
    all.places = static_cast<uint32_t>(of.of.rc_requests);
    return all;
}

ClockRules rules_of(const Prices& of, bool shares_hosts) {
    return {least_latency(of, shares_hosts) - 1,
            static_cast<uint32_t>(of.of.processor_cores),
            of.of.processor_slice,
            of.of.processor_process_switch,
            of.of.system_wake_up,
            kSkipNs};
}

/// One run: the world and its results.
class ProgramJob {
  public:
    explicit ProgramJob(const ProgramRun& run, Placement placement)
        : run_(run),
          placement_(std::move(placement)),
          world_(run.seed),
          network_(world_, placement_.hosts, 1, weather_of(prices())),
          devices_(world_, devices_of(prices(), placement_.hosts)),
          daemons_(world_, placement_),
          next_core_(placement_.hosts) {
        world_.trace = run.trace;
        world_.limit = world_.now + run.limit_s * 1'000'000'000;
        world_.use_clocks(rules_of(prices(), run.ranks > run.hosts));
        world_.on_exit = [this](Process& process, int code) { end(process, code); };
    }

    int play() {
        for (uint32_t rank = 0; rank < run_.ranks; ++rank) add({0, rank, rank, placement_.host_of_rank[rank]}, run_.program, run_.arguments);
        daemons_.allow_spawns([this](uint32_t job, uint32_t rank) { start_spawned(job, rank); },
                              [this](const control::SpawnRequest& request, FurtherJob& out) { return prepare(request, out); });
        const uint64_t begin = world_.now;
        const auto real_begin = std::chrono::steady_clock::now();
        const std::string trouble = world_.run();
        real_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - real_begin).count();
        virtual_s_ = static_cast<double>(last_end_ - std::min(begin, last_end_)) / 1e9;
        std::fflush(stdout);
        if (!trouble.empty()) std::fprintf(stderr, "simulate: %s\n", trouble.c_str());
        add_counters();
        print();
        if (!run_.report.empty()) write_report();
        return trouble.empty() ? code_ : 1;
    }

  private:
    /// A rank of any job, and its place.
    struct Rank {
        uint32_t job, rank, number, host;
    };
    /// A job that the program has spawned: the command of each rank.
    struct SpawnedJob {
        std::vector<Rank> ranks;
        std::vector<const control::SpawnCommand*> commands;
        control::SpawnRequest request;
    };

    void add(const Rank& who, const std::string& file, const std::vector<std::string>& arguments) {
        const ProgramCopy program = library(run_.library, who.number, file).program;
        arguments_.push_back(std::make_unique<Arguments>(file, arguments));
        Arguments& own = *arguments_.back();
        Process& process = world_.add_to_job(who.job, who.host, who.rank, who.number, [this, program, &own](Process& me) {
            me.doing = "the start of the program";
            end(me, program.main(static_cast<int>(own.pointers.size()) - 1, own.pointers.data()));
        });
        process.program = program.address;
        process.cpu = next_core_[who.host]++ % placement_.cores;
        meters_.push_back(std::make_unique<CounterMeter>(counters_of(who)));
        process.meter = meters_.back().get();
        ranks_.push_back(who);
    }

    /// Returns the host with the fewest living processes, the first of several.
    uint32_t least_used_host(const std::vector<uint32_t>& chosen) const {
        std::vector<uint32_t> used(placement_.hosts);
        for (const auto& process : world_.processes())
            if (process->fiber && process->leader == process.get() && !process->gone()) ++used[process->host];
        for (const uint32_t host : chosen) ++used[host];
        return static_cast<uint32_t>(std::min_element(used.begin(), used.end()) - used.begin());
    }

    // Copies of the library are loaded in the order of their numbers, so all ranks of a job are loaded at its request.
    bool prepare(const control::SpawnRequest& request, FurtherJob& out) {
        auto made = std::make_unique<SpawnedJob>();
        made->request = request;
        for (const control::SpawnCommand& command : made->request.commands) {
            if (command.argv.empty() || find_program(command.argv[0]).empty()) return false;
            for (uint32_t i = 0; i < command.maxprocs; ++i) {
                const auto rank = static_cast<uint32_t>(made->ranks.size());
                out.host_of_rank.push_back(least_used_host(out.host_of_rank));
                made->ranks.push_back({static_cast<uint32_t>(spawned_.size() + 1), rank, out.first + rank, out.host_of_rank.back()});
                made->commands.push_back(&command);
            }
        }
        world_.outside([&] {
            for (size_t i = 0; i < made->ranks.size(); ++i)
                library(run_.library, made->ranks[i].number, find_program(made->commands[i]->argv[0]));
        });
        world_.limit_lead(least_latency(prices(), true) - 1);
        spawned_.push_back(std::move(made));
        return true;
    }

    void start_spawned(uint32_t job, uint32_t rank) {
        const SpawnedJob& of = *spawned_[job - 1];
        const std::vector<std::string>& argv = of.commands[rank]->argv;
        add(of.ranks[rank], find_program(argv[0]), {argv.begin() + 1, argv.end()});
    }

    /// Ends the calling process. A code other than 0 ends the whole job.
    [[noreturn]] void end(Process& process, int code) {
        last_end_ = std::max(last_end_, world_.now);
        process.doing = "its end";
        if (code != 0) {
            if (code_ == 0) {
                code_ = code;
                std::fflush(stdout);
                std::fprintf(stderr, "simulate: rank %u ended with code %d\n", process.rank, code);
            }
            daemons_.end_job(process);
        }
        close_all_of(process);
        daemons_.note_end(process);
        world_.finish();
    }

    const Counters& counters_of(const Rank& who) {
        return *shm::SegmentRegion(daemons_.jobs()[who.job]->segments[who.host].region(who.rank)).counters();
    }

    void add_counters() {
        size_t count = 0;
        const Counter* const table = counter_table(count);
        for (size_t i = 0; i < count; ++i)
            for (const Rank& who : ranks_) counted_[table[i].name] += counter_value(table[i], counters_of(who));
    }

    /// Returns the number of messages by path. Frames of RC connections are either in rings or in the queue.
    std::vector<std::pair<const char*, uint64_t>> paths() const {
        const auto count = [this](const char* name) { return counted_.at(name); };
        const uint64_t ring = count("messages_rc_ring");
        return {{"shared_memory", count("messages_ring") + count("messages_inbox")},
                {"udp", count("messages_udp")},
                {"tcp", count("messages_tcp")},
                {"ud", count("messages_verbs")},
                {"rc", count("messages_rc") - std::min(ring, count("messages_rc"))},
                {"ring", ring}};
    }

    void print() const {
        std::printf("simulate: %.6f virtual s, %.2f real s (%.1f per virtual second), %zu ranks on %u hosts, %" PRIu64
                    " turns, hash %016" PRIx64 "\n",
                    virtual_s_, real_s_, virtual_s_ > 0 ? real_s_ / virtual_s_ : 0, ranks_.size(), run_.hosts, world_.switches(),
                    world_.hash());
        uint64_t all = 0;
        for (const auto& [name, count] : paths()) all += count;
        std::printf("simulate: messages by path:");
        for (const auto& [name, count] : paths())
            std::printf(" %s %.1f %%", name, all == 0 ? 0 : 100 * static_cast<double>(count) / static_cast<double>(all));
        std::printf(", of %" PRIu64 "\n", all);
        std::fflush(stdout);
    }

    void write_report() const {
        Json all{{"program", std::filesystem::path(run_.program).filename().string()},
                 {"arguments", run_.arguments},
                 {"costs", run_.costs},
                 {"ranks", run_.ranks},
                 {"spawned", ranks_.size() - run_.ranks},
                 {"hosts", run_.hosts},
                 {"virtual_seconds", virtual_s_},
                 {"real_seconds", real_s_},
                 {"turns", world_.switches()},
                 {"hash", world_.hash()},
                 {"exit_code", code_},
                 {"cache_misses", network()->adapters().misses}};
        for (const auto& [name, count] : paths()) all["messages"][name] = count;
        all["counters"] = counted_;
        FILE* const file = std::fopen(run_.report.c_str(), "we");
        if (!file) refuse(run_.report + " can't be written: " + std::strerror(errno));
        const std::string text = all.dump(1) + "\n";
        const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
        if (std::fclose(file) != 0 || !written) refuse(run_.report + " can't be written: " + std::strerror(errno));
    }

    /// The arguments of one rank, which the program may change.
    struct Arguments {
        std::vector<std::string> texts;
        std::vector<char*> pointers;

        Arguments(const std::string& program, const std::vector<std::string>& arguments) : texts(arguments) {
            texts.insert(texts.begin(), std::filesystem::path(program).filename().string());
            for (std::string& one : texts) pointers.push_back(one.data());
            pointers.push_back(nullptr);
        }
    };

    const ProgramRun& run_;
    const Placement placement_;
    World world_;
    Network network_;
    Devices devices_;
    Daemons daemons_;
    std::vector<std::unique_ptr<Arguments>> arguments_;
    std::vector<std::unique_ptr<CounterMeter>> meters_;
    std::vector<Rank> ranks_;                            ///< that have started, of all jobs
    std::vector<std::unique_ptr<SpawnedJob>> spawned_;   ///< jobs number 1, 2, …
    std::vector<uint32_t> next_core_;                    ///< by host
    std::map<std::string, uint64_t> counted_;
    double real_s_ = 0, virtual_s_ = 0;
    uint64_t last_end_ = 0;
    int code_ = 0;
};

}  // namespace

int run_program(const ProgramRun& wanted) {
    ProgramRun run = wanted;
    if (const std::string error = read_costs(run.costs, prices()); !error.empty()) refuse(error);
    price_pauses();
    Placement placement = placement_of(run);
    read_plan(run, placement);
    set_environment(run);
    static ProgramJob job(run, std::move(placement));
    const int code = job.play();
    std::fflush(nullptr);
    _exit(code);  // runs no destructors of the copies, whose processes have ended
}

}  // namespace starling::simulation
