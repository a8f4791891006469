#include "script.h"

#include <algorithm>

namespace starling::simulation {

namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr size_t kMostCommunities = 12;

using Choices = const char* const[4];

}  // namespace

int Community::rank_of(uint32_t number) const {
    const auto at = std::find(members.begin(), members.end(), number);
    return at == members.end() ? -1 : static_cast<int>(at - members.begin());
}

Script::Script(uint64_t its_seed, uint32_t wanted_ranks, bool plain) : seed(its_seed) {
    Random random(seed ^ 0x5c71);
    place(random, wanted_ranks);
    set(random);
    has_jobs_ = !plain && seed % 10 == 1;
    write(random);
    trouble(random);
    move_deaths(Random(seed ^ 0xdea7));
    if (has_jobs_ && mortal) add_deaths_in_spawns(Random(seed ^ 0xdeb5));
    if (mortal && (seed % 28 == 15 || seed % 28 == 23)) add_survival(Random(seed ^ 0x5a1f));
    // Residues of no seed that has found a defect before.
    if (!steps.empty() && steps.back().kind == Kind::survive && seed % 5 >= 2) let_some_leave(Random(seed ^ 0x1ea7e));
    const uint64_t of_28 = seed % 28;
    keeps = mortal && !plain && seed % 5 != 0 && (of_28 == 11 || of_28 == 26);
    if (keeps || (mortal && !plain && seed % 5 != 0 && (of_28 == 2 || of_28 == 4 || of_28 == 9 || of_28 == 20)))
        add_replacement(Random(seed ^ 0x5ab5));
    // Residues of no seed that has found a defect before.
    const uint64_t of_29 = seed % 29;
    const bool may_have_files =
        of_29 == 13 || (mortal && (of_29 == 6 || of_29 == 19 || of_29 == 22 || of_29 == 24 || of_29 == 26));
    const bool has_last = !steps.empty() && (steps.back().kind == Kind::survive || steps.back().kind == Kind::replace);
    if (kHasThreads && !plain && may_have_files && !has_last) add_files(Random(seed ^ 0xf11e5));
    // Devices are drawn from a separate sequence, so that older seeds keep their meaning.
    const bool has_devices = placement.hosts > 1 && Random(seed ^ 0x7e6b).one_in(3);
    // Devices do not carry encrypted messages, so fewer runs have both.
    placement.encrypts = placement.hosts > 1 && Random(seed ^ 0x5ea1).one_in(has_devices ? 8 : 3);
    settings.emplace_back("STARLING_ENCRYPTION", placement.encrypts ? "on" : "off");
    set_multicast(Random(seed ^ 0x6c57));
    set_turns(Random(seed ^ 0x7a9b));
    if (has_devices) set_devices(Random(seed ^ 0x7e6c));
    if (kHasThreads && !plain && (seed % 13 == 0 || seed % 13 == 5)) set_threads(Random(seed ^ 0x74ead));
    if (seed % 37 == 11 || seed % 37 == 28) add_absences(Random(seed ^ 0xab5e));
}

Script Script::with_devices(uint32_t ranks, uint32_t hosts) {
    Script made;
    made.ranks = ranks;
    made.doomed.assign(ranks, false);
    made.placement.hosts = hosts;
    const uint32_t per_host = (ranks + hosts - 1) / hosts;
    for (uint32_t rank = 0; rank < ranks; ++rank) made.placement.host_of_rank.push_back(rank / per_host);
    made.devices.fitted.assign(hosts, true);
    for (const auto& [setting, value] :
         {std::pair{"STARLING_CONFIG", "none"}, {"STARLING_PMI", "none"}, {"STARLING_RMA_THREAD", "off"}})
        made.settings.emplace_back(setting, value);
    Community& world = made.communities.emplace_back();
    world.predefined = true;
    for (uint32_t rank = 0; rank < ranks; ++rank) world.members.push_back(rank);
    made.released_.push_back(false);
    return made;
}

Script Script::large(uint32_t ranks) {
    constexpr uint32_t kPerHost = 64;
    Script made = with_devices(ranks, (ranks + kPerHost - 1) / kPerHost);
    made.name = "large";
    made.write_large();
    return made;
}

Script Script::phased(uint32_t ranks) {
    Script made = with_devices(ranks, ranks);
    made.name = "phased";
    made.devices.places = made.devices.sends = 256;
    for (const auto& [setting, value] : {std::pair{"STARLING_PLAN", "learn"},
                                         {"STARLING_MAX_CONNECTIONS", "4"},
                                         {"STARLING_MAX_DIRECT", "4"},
                                         {"STARLING_CONNECT_MESSAGES", "8"},
                                         {"STARLING_WAIT", "poll"},
                                         {"STARLING_MULTICAST", "off"}})
        made.settings.emplace_back(setting, value);
    made.write_phased();
    return made;
}

void Script::add_message(uint32_t from, uint32_t to) {
    Step step{};
    step.kind = Kind::message;
    step.send = SendWay::isend;
    step.receive = ReceiveWay::irecv;
    step.from = static_cast<int>(from);
    step.to = static_cast<int>(to);
    step.tag = next_tag_;
    next_tag_ = next_tag_ == 30'000 ? 1000 : next_tag_ + 2;
    add(step);
}

// Neighbors exchange enough for a connection by any measure (STARLING_CONNECT_BYTES, _MESSAGES), all others little.
void Script::write_large() {
    constexpr uint32_t kRounds = 6, kBytes = 48 << 10, kReductions = 20;
    for (uint32_t round = 0; round < kRounds; ++round)
        for (const uint32_t stride : {1u, 16u, 128u})
            for (uint32_t rank = 0; rank < ranks; ++rank) {
                const uint32_t to = (rank + stride) % ranks;
                if (rank == to) continue;
                add_message(rank, to);
                steps.back().bytes = kBytes;
            }
    Step step{};
    step.kind = Kind::collective;
    step.count = 1;
    step.collective = Collective::allreduce;
    for (uint32_t i = 0; i < kReductions; ++i) add(step);
    step.collective = Collective::alltoall;
    add(step);
}

// Each phase has two partners per rank: its neighbors in a ring whose order differs in each phase. Messages have 1 KB; eight are
// outstanding at a time.
void Script::write_phased() {
    constexpr uint32_t kPhases = 4, kRounds = 8, kMessages = 500, kAtATime = 8, kBytes = 1024;
    std::vector<std::vector<uint32_t>> orders(kPhases);
    Random random(1);
    for (std::vector<uint32_t>& order : orders) {
        order = communities[0].members;
        for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
    }
    for (uint32_t round = 0; round < kRounds; ++round)
        for (uint32_t phase = 0; phase < kPhases; ++phase) {
            Step begin{};
            begin.kind = Kind::phase;
            begin.count = phase;
            add(begin);
            for (uint32_t i = 0; i < kMessages; ++i)
                for (uint32_t at = 0; at < ranks; ++at)
                    for (const uint32_t away : {1u, 2u}) {
                        add_message(orders[phase][at], orders[phase][(at + away) % ranks]);
                        steps.back().bytes = kBytes;
                        steps.back().waits = i % kAtATime == kAtATime - 1;
                    }
        }
}

// InfiniBand and RoCE, mostly on all hosts and rails. The network's faults also affect devices, which have some faults besides.
void Script::set_devices(Random random) {
    const bool all = random.one_in(2);
    for (uint32_t i = 0; i < placement.hosts * rails; ++i) devices.fitted.push_back(all || !random.one_in(3));
    devices.mtu = random.one_of({1024u, 2048u, 4096u, 4096u});
    devices.frame = random.one_of({1024u, 4096u, 4096u, 4096u});
    devices.inline_bytes = random.one_of({0u, 64u, 192u, 192u});
    devices.mixes = random.one_in(2);
    devices.routed = random.one_in(2);
    settings.emplace_back("STARLING_VERBS", "auto");
    // Draws low thresholds mostly; otherwise runs end before a connection opens.
    settings.emplace_back("STARLING_MAX_CONNECTIONS", random.one_of({"0", "1", "4", "256", "256", "256"}));
    settings.emplace_back("STARLING_CONNECT_MESSAGES", random.one_of({"4", "4", "4", "16"}));
    settings.emplace_back("STARLING_CONNECT_BYTES", random.one_of({"1", "1", "20000", "131072"}));
    // The protocols include rendezvous by RDMA write, with write-with-immediate ("note") or a separate send ("write").
    settings.emplace_back("STARLING_LONG_PROTOCOL", random.one_of({"auto", "auto", "write", "note"}));
    if (weather.loss == 0 && !random.one_in(4)) return;
    devices.receives = random.one_of({8u, 64u, 256u, 256u});
    devices.sends = random.one_of({2u, 16u, 64u, 64u});
    devices.places = random.one_of({4u, 16u, 64u, 64u});
    devices.breaks = random.one_in(3) ? 0.01 : 0;
    devices.refuses = random.one_in(3) ? 0.1 : 0;
    if (!random.one_in(3)) return;
    for (uint64_t i = random.between(1, 4); i > 0; --i) {
        const auto host = static_cast<uint32_t>(random.below(placement.hosts));
        const auto rail = static_cast<uint32_t>(random.below(rails));
        const uint64_t begin = random.below(60 * kMs);
        const uint64_t end = begin + (random.one_in(3) ? random.below(3000 * kMs) : random.below(100 * kMs));
        const bool comes = !devices.fitted[host * rails + rail];
        if (!comes) faults.push_back({Fault::Kind::device_out, begin, host, rail, 0});
        faults.push_back({Fault::Kind::device_in, end, host, rail, 0});
    }
}

// Lets ranks compute for about the timeout of a peer that acknowledges nothing. Meanwhile pairs of other ranks wait and have nothing to send
// to each other; a time that one of them noted before the pause must not count afterwards. Ranks that poll all the time would take the
// simulator minutes.
void Script::add_absences(Random random) {
    constexpr uint64_t kTimeout = 10'000 * kMs;
    if (placement.hosts < 2 || has_setting("STARLING_WAIT", "poll")) return;
    for (Step& step : steps)
        if (step.kind == Kind::compute && random.one_in(2)) step.ns = kTimeout - random.below(100 * kMs);
}

// A thread of the library moves messages beside each rank, or carries out accesses of other hosts to windows.
void Script::set_threads(Random random) {
    has_threads_ = true;
    const bool moves_messages = !random.one_in(3);
    const std::pair<std::string, std::string> chosen =
        moves_messages ? std::pair("STARLING_WAIT", "thread") : std::pair("STARLING_RMA_THREAD", "on");
    std::replace_if(
        settings.begin(), settings.end(), [&](const auto& one) { return one.first == chosen.first; }, chosen);
}

void Script::set_multicast(Random random) {
    settings.emplace_back("STARLING_MULTICAST", random.one_of({"auto", "basic", "lazy", "pool"}));
    settings.emplace_back("STARLING_MULTICAST_GROUPS", random.one_of({"1", "3", "16", "16"}));
    settings.emplace_back("STARLING_MULTICAST_POOL", random.one_of({"1", "2", "4", "4"}));
}

// Forces turns of multicasts, also for short data: most steps are too short for them.
void Script::set_turns(Random random) {
    if (placement.hosts < 3) return;
    if (random.one_in(2)) settings.emplace_back("STARLING_COLL_ALLGATHER", "multicast_turns");
    if (random.one_in(3)) settings.emplace_back("STARLING_COLL_ALLREDUCE", "multicast_turns");
}

void Script::place(Random& random, uint32_t wanted_ranks) {
    const uint64_t size = random.below(100);
    ranks = static_cast<uint32_t>(size < 40   ? random.between(2, 4)
                                  : size < 85 ? random.between(2, 8)
                                  : size < 97 ? random.between(2, 16)
                                              : random.between(2, 64));
    if (wanted_ranks != 0) ranks = wanted_ranks;
    doomed.assign(ranks, false);
    // A third of the runs has no network.
    const uint64_t hosts = random.one_in(3) ? 1 : random.between(2, std::min<uint64_t>(ranks, 6));
    placement.hosts = static_cast<uint32_t>(hosts);
    const bool in_turn = random.one_in(2);
    for (uint32_t rank = 0; rank < ranks; ++rank)
        placement.host_of_rank.push_back(static_cast<uint32_t>(in_turn ? rank % hosts : rank * hosts / ranks));
    // With a core for each rank, waits spin for long, which costs the simulator time.
    placement.cores = random.one_in(12) && ranks <= 8 ? ranks : 1;
    rails = static_cast<uint32_t>(random.one_in(2) ? 1 : random.between(2, 3));
}

void Script::set(Random& random) {
    static const struct {
        const char* name;
        Choices values;
    } kSettings[] = {
        {"STARLING_WAIT", {"adaptive", "adaptive", "adaptive", "poll"}},
        {"STARLING_SPIN_US", {"0", "50", "2000", "2000"}},
        {"STARLING_EAGER_LIMIT", {"0", "700", "16384", "65536"}},
        {"STARLING_STREAM_LIMIT", {"0", "65536", "1048576", "1048576"}},
        {"STARLING_SPLIT_LIMIT", {"16384", "16384", "65536", "65536"}},
        {"STARLING_MAX_DIRECT", {"0", "1", "2", "16"}},
        {"STARLING_DIRECT_THRESHOLD", {"4", "4", "8", "40"}},
        {"STARLING_SINGLE_COPY", {"auto", "auto", "on", "off"}},
        {"STARLING_LONG_PROTOCOL", {"auto", "auto", "pieces", "both"}},
        {"STARLING_MAX_CONNECTIONS", {"0", "1", "2", "256"}},
        {"STARLING_CONNECT_MESSAGES", {"4", "4", "16", "64"}},
        {"STARLING_CONNECT_BYTES", {"1", "20000", "131072", "131072"}},
        {"STARLING_IP_SOCKETS", {"1", "1", "2", "3"}},
        {"STARLING_IP_PIECE", {"65536", "65536", "524288", "524288"}},
        {"STARLING_IP_WINDOW", {"131072", "131072", "1048576", "1048576"}},
    };
    for (const auto& row : kSettings) settings.emplace_back(row.name, random.one_of(row.values));
    placement.plans = Plans(seed);
    settings.emplace_back("STARLING_PLAN", placement.plans.source());
    settings.emplace_back("STARLING_PLAN_COLLECTIVES", placement.plans.collectives(ranks));
    settings.emplace_back("STARLING_REPLACE_MESSAGES", placement.plans.replace_messages());
    settings.emplace_back("STARLING_CONFIG", "none");
    settings.emplace_back("STARLING_CHECKED", "1");
    settings.emplace_back("STARLING_PMI", "none");
    settings.emplace_back("STARLING_RMA_THREAD", "off");
    static constexpr uint32_t kMtus[] = {1500, 1500, 1500, 4000, 9000};
    weather.mtu = random.one_of(kMtus);
    weather.cuts_runs = !random.one_in(4);
    weather.latency_ns = random.between(3, 200) * 1000;
    weather.buffer = static_cast<uint32_t>(random.between(8, 512) << 10);
    // Two thirds of the runs draw further faults.
    const uint64_t trouble = random.below(6);
    const bool several = placement.hosts > 1;
    mortal = trouble == 5;
    placement.recovers = mortal;
    name = mortal && several ? "deaths, hosts" : mortal ? "deaths" : several ? "hosts" : "one host";
    if (!several || trouble < 2) return;
    if (!mortal) name = "loss";
    weather.loss = static_cast<double>(random.below(100)) / 400;
    weather.twice = static_cast<double>(random.below(100)) / 500;
    weather.late = static_cast<double>(random.below(100)) / 300;
    weather.late_ns = random.between(100, 20'000) * 1000;
    weather.queue = static_cast<uint32_t>(random.between(4, 400));
    weather.breaks = random.one_in(3) ? 0.01 : 0;
}

// Draws faults. Except for deaths, each ends so early that the library may not treat it as more than a pause.
void Script::trouble(Random& random) {
    if (mortal) {
        const uint64_t deaths = ranks > 2 && random.one_in(3) ? 2 : 1;
        for (uint64_t i = 0; i < deaths; ++i) {
            const auto rank = static_cast<uint32_t>(random.below(ranks));
            doomed[rank] = true;
            faults.push_back({Fault::Kind::death, random.below(random.one_in(2) ? 3 * kMs : 60 * kMs), 0, 0, rank, UINT32_MAX});
        }
    }
    if (placement.hosts < 2 || !random.one_in(3)) return;
    if (!mortal) name = "rails";
    for (uint64_t i = random.between(1, 6); i > 0; --i) {
        const auto host = static_cast<uint32_t>(random.below(placement.hosts));
        const auto rail = static_cast<uint32_t>(random.below(rails));
        // A process that starts without any rail ends with an error: rail 0 is always up, even if it carries nothing.
        const bool seen = rail != 0 && random.one_in(2);
        const uint64_t begin = random.below(60 * kMs);
        const uint64_t end = begin + (random.one_in(3) ? random.below(3000 * kMs) : random.below(100 * kMs));
        faults.push_back({seen ? Fault::Kind::rail_down : Fault::Kind::silent, begin, host, rail, 0});
        faults.push_back({seen ? Fault::Kind::rail_up : Fault::Kind::heard, end, host, rail, 0});
    }
}

// Moves deaths into windows and OpenSHMEM steps, where they leave the most unfinished work.
void Script::move_deaths(Random random) {
    static constexpr uint64_t kWithin[] = {kMs / 50, kMs / 3, 3 * kMs, 20 * kMs};
    std::vector<uint32_t> long_steps;
    for (const Step& step : steps)
        if (step.kind == Kind::window || step.kind == Kind::symmetric) long_steps.push_back(step.id);
    for (Fault& fault : faults) {
        if (fault.kind != Fault::Kind::death || long_steps.empty() || random.one_in(4)) continue;
        fault.step = long_steps[random.below(long_steps.size())];
        fault.at = random.below(random.one_of(kWithin));
    }
}

// Lets the survivors revoke and shrink the world at the end, and moves most deaths into this.
void Script::add_survival(Random random) {
    static constexpr uint64_t kWithin[] = {kMs / 100, kMs / 20, kMs / 3, 3 * kMs};
    Step step{.kind = Kind::survive};
    step.count = static_cast<uint32_t>(random.below(4));
    step.from = static_cast<int>(random.below(ranks));
    const uint32_t id = add(step).id;
    for (Fault& fault : faults) {
        if (fault.kind != Fault::Kind::death || fault.rank >= ranks || random.one_in(4)) continue;
        fault.step = id;
        fault.at = random.below(random.one_of(kWithin));
    }
}

// Lets ranks finalize while the others revoke and shrink the world, but not the one that revokes it first. If the world has several hosts,
// often all ranks of a host finalize: then no other process there can tell.
void Script::let_some_leave(Random random) {
    const uint32_t host = random.one_in(2) ? static_cast<uint32_t>(random.below(placement.hosts)) : UINT32_MAX;
    const bool leave_alone = host != UINT32_MAX && random.one_in(2);
    leaving.assign(ranks, false);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
        const bool drawn = random.one_in(3);
        leaving[rank] = placement.host_of_rank[rank] == host || (drawn && !leave_alone);
    }
    leaving[static_cast<size_t>(steps.back().from)] = false;
}

// Lets the living members of the world use files at the end, and moves most deaths into this, many into a certain call.
void Script::add_files(Random random) {
    static constexpr uint64_t kWithin[] = {kMs / 1000, kMs / 100, kMs / 10, kMs, 5 * kMs};
    Step step{.kind = Kind::files};
    step.count = static_cast<uint32_t>(random.below(3));
    const uint32_t id = add(step).id;
    for (Fault& fault : faults) {
        if (fault.kind != Fault::Kind::death || fault.rank >= ranks || random.one_in(6)) continue;
        fault.step = id;
        fault.call = random.one_in(4) ? 0 : static_cast<uint32_t>(random.between(1, 16));
        fault.at = random.below(random.one_of(kWithin));
    }
}

// Lets the survivors replace the dead ranks of the world at the end, and moves most deaths into this, many into a certain call. More ranks
// die than without this step, but at least one lives.
void Script::add_replacement(Random random) {
    static constexpr uint64_t kWithin[] = {kMs / 100, kMs / 10, kMs, 5 * kMs, 60 * kMs};
    Step step{.kind = Kind::replace};
    step.count = static_cast<uint32_t>(random.below(3));
    const uint32_t id = add(step).id;
    placement.replaces = true;
    auto living = static_cast<uint64_t>(std::count(doomed.begin(), doomed.begin() + ranks, false));
    for (uint64_t more = random.below(3); more > 0 && living > 1; --more) {
        const auto rank = static_cast<uint32_t>(random.below(ranks));
        if (doomed[rank]) continue;
        doomed[rank] = true;
        --living;
        faults.push_back({Fault::Kind::death, 0, 0, 0, rank, id});
    }
    for (Fault& fault : faults) {
        if (fault.kind != Fault::Kind::death || fault.rank >= ranks) continue;
        ++spare_copies;
        if (fault.step != id && random.one_in(4)) continue;
        fault.step = id;
        fault.call = random.one_in(3) ? 0 : static_cast<uint32_t>(random.between(1, 3));
        fault.at = random.below(random.one_of(kWithin));
    }
    spare_copies *= 2;
}

// Only those of the first jobs die, so that some replacement succeeds.
SubstituteDeath Script::death_of_substitute(uint32_t job, uint32_t number) const {
    static constexpr uint64_t kWithin[] = {kMs / 10, kMs, 5 * kMs, 60 * kMs};
    constexpr uint32_t kDeadlyJobs = 4;
    Random random(mix(seed ^ 0x5ab7) + number);
    using When = SubstituteDeath::When;
    if (job > placement.further.size() + kDeadlyJobs || !random.one_in(3)) return {};
    const When when = random.one_of({When::after_start, When::after_start, When::before_call, When::in_call});
    return {when, random.below(random.one_of(kWithin))};
}

Step& Script::add(Step step) {
    step.id = static_cast<uint32_t>(steps.size());
    return steps.emplace_back(step);
}

uint32_t Script::draw_bytes(Random& random) {
    static constexpr uint32_t kMost[] = {0, 8, 64, 64, 900, 1100, 4000, 20'000, 70'000, 300'000};
    const auto drawn = std::min<uint64_t>(random.below(uint64_t{random.one_of(kMost)} + 1), bytes_left_);
    bytes_left_ -= drawn;
    return static_cast<uint32_t>(drawn);
}

void Script::write(Random& random) {
    Community& world = communities.emplace_back();
    for (uint32_t rank = 0; rank < ranks; ++rank) world.members.push_back(rank);
    world.predefined = true;
    released_.push_back(false);
    Random jobs_random(seed ^ 0x10b5);
    if (has_jobs_) begin_jobs(jobs_random);
    bytes_left_ = 1'500'000;
    const uint64_t count = random.between(5, ranks <= 8 ? 20 + 20 * ranks : 160);
    while (steps.size() < count) {
        if (has_jobs_ && jobs_random.one_in(8)) write_jobs(jobs_random);
        const uint64_t community = random.one_in(2) ? 0 : random.below(communities.size());
        if (!released_[community]) write_step(random, static_cast<uint32_t>(community));
    }
}

void Script::write_step(Random& random, uint32_t community) {
    const Community& of = communities[community];
    const uint64_t size = of.members.size();
    Step step{};
    step.comm = community;
    step.from = static_cast<int>(random.below(size));
    step.to = static_cast<int>(random.below(of.receivers().size()));
    step.tag = static_cast<int>(random.below(3));
    if (of.is_inter()) return !mortal && random.one_in(4) ? write_across(random, step) : write_message(random, step);
    // Only some seeds draw windows, so that the runs of all other seeds stay unchanged.
    if ((seed % 8 == 3 || seed % 8 == 4) && random.one_in(8)) return write_window(random, step);
    const uint64_t sixteenth = seed % 16;
    if ((sixteenth == 5 || sixteenth == 12 || sixteenth == 14) && random.one_in(8)) return write_symmetric(random, step);
    const uint64_t kind = random.below(100);
    if (kind < 4) {
        step.kind = Kind::compute;
        step.ns = random.below(random.one_in(10) ? 40 * kMs : kMs / 5);
        add(step);
    } else if (kind < 60) {
        write_message(random, step);
    } else if (kind < 72) {
        write_crowd(random, step);
    } else if (kind < 92) {
        write_collective(random, step);
    } else if (!mortal) {
        write_communities(random, step);
    }
}

void Script::write_message(Random& random, Step step) {
    step.bytes = draw_bytes(random);
    step.waits = random.one_in(3);
    step.send = static_cast<SendWay>(random.below(5));
    step.receive = static_cast<ReceiveWay>(random.below(7));
    step.any_tag = random.one_in(4);
    step.kind = Kind::message;
    if (random.one_in(4)) {
        step.bytes &= ~7u;
        step.strided_out = step.bytes > 0 && !random.one_in(3);
        step.strided_in = step.bytes > 0 && !random.one_in(3);
    }
    const uint64_t kind = random.below(20);
    if (kind == 0 && !mortal) step.kind = Kind::cancel_send;
    if (kind == 1 && !mortal) step.kind = Kind::cancel_receive;
    const bool inter = communities[step.comm].is_inter();
    if (kind == 2 && !inter) step.kind = Kind::exchange;
    if (step.kind != Kind::message) {
        step.tag = next_tag_;
        next_tag_ += 2;
    }
    // A rank communicates with itself only by non-blocking operations: others would wait for their other half.
    if (step.from == step.to && !inter) {
        step.waits = false;
        if (step.kind == Kind::cancel_send || step.kind == Kind::cancel_receive) return;
        step.send = random.one_in(2) ? SendWay::isend : SendWay::issend;
        step.receive = ReceiveWay::irecv;
    }
    // Several equal steps in a row fill paths and open connections.
    const uint64_t copies = step.kind == Kind::message && step.bytes < 2000 && random.one_in(6) ? random.between(5, 60) : 1;
    for (uint64_t i = 0; i < copies; ++i) add(step);
}

// Receives with MPI_ANY_SOURCE could match messages for other receives, so a crowd has a separate tag. Its steps are consecutive, because a
// sender might have to do an intermediate step first. There are no crowds if ranks die: the receiver would not know for which rank it
// waits.
void Script::write_crowd(Random& random, Step step) {
    const auto size = static_cast<int>(communities[step.comm].members.size());
    if (mortal || size < 2) return;
    step.kind = Kind::crowd;
    step.tag = next_tag_++;
    step.crowd = static_cast<uint32_t>(steps.size());
    const uint64_t count = random.between(2, 6);
    for (uint32_t i = 0; i < count; ++i) {
        step.place = i;
        step.from = (step.to + 1 + static_cast<int>(random.below(static_cast<uint64_t>(size) - 1))) % size;
        step.bytes = 8 + draw_bytes(random);
        step.send = static_cast<SendWay>(random.below(4));
        step.receive = static_cast<ReceiveWay>(random.below(5));
        if (step.receive == ReceiveWay::persistent) step.receive = ReceiveWay::irecv;
        step.waits = random.one_in(3);
        add(step);
    }
}

void Script::write_collective(Random& random, Step step) {
    static constexpr uint32_t kCounts[] = {0, 1, 4, 40, 600, 6000};
    step.kind = Kind::collective;
    step.collective = static_cast<Collective>(random.below(kCollectives));
    const uint64_t size = communities[step.comm].members.size();
    const uint64_t most = std::min<uint64_t>(random.one_of(kCounts), bytes_left_ / 8 / size);
    step.count = static_cast<uint32_t>(random.below(most + 1));
    bytes_left_ -= std::min<uint64_t>(bytes_left_, step.count * 8 * size);
    static constexpr SendWay kWays[] = {SendWay::send, SendWay::send, SendWay::isend, SendWay::isend, SendWay::persistent};
    step.send = random.one_of(kWays);  // blocking, non-blocking or persistent
    step.waits = random.one_in(2);
    add(step);
}

void Script::write_window(Random& random, Step step) {
    step.kind = Kind::window;
    step.count = static_cast<uint32_t>(random.between(1, 4));
    step.any_tag = random.one_in(2);
    add(step);
}

void Script::write_symmetric(Random& random, Step step) {
    step.kind = Kind::symmetric;
    step.comm = 0;
    step.count = static_cast<uint32_t>(random.between(1, 4));
    if (!symmetric) symmetric_first = random.one_in(2), symmetric_last = random.one_in(2);
    symmetric = true;
    add(step);
}

void Script::write_communities(Random& random, Step step) {
    if (!communities[step.comm].predefined && random.one_in(3)) {
        step.kind = Kind::release;
        released_[step.comm] = true;
        add(step);
        return;
    }
    if (communities.size() >= (has_jobs_ ? 3 : 1) * kMostCommunities) return;
    const std::vector<uint32_t> parent = communities[step.comm].members;
    step.kind = random.one_in(3) ? Kind::duplicate : Kind::split;
    step.colors = step.kind == Kind::duplicate ? 1 : static_cast<uint32_t>(random.between(1, 3));
    step.made = static_cast<uint32_t>(communities.size());
    add(step);
    for (uint32_t color = 0; color < step.colors; ++color) {
        Community& made = communities.emplace_back();
        for (size_t i = 0; i < parent.size(); ++i)
            if (i % step.colors == color) made.members.push_back(parent[i]);
        // The ranks of a split are in the order of its keys, which decrease.
        if (step.kind == Kind::split) std::reverse(made.members.begin(), made.members.end());
        released_.push_back(made.members.empty());
    }
}

bool Script::has_setting(const std::string& setting, const std::string& value) const {
    return std::find(settings.begin(), settings.end(), std::pair(setting, value)) != settings.end();
}

Features Script::drawn() const {
    Features all;
    for (const Step& step : steps) {
        if (step.kind == Kind::window) all.add(Feature::windows);
        if (step.kind == Kind::symmetric) all.add(Feature::symmetric);
        if (step.kind == Kind::spawn) all.add(Feature::spawn);
        if (step.kind == Kind::connect) all.add(Feature::ports);
        if (step.kind == Kind::collective && step.send == SendWay::persistent) all.add(Feature::persistent);
    }
    if (placement.hosts > 1) all.add(Feature::multicast);
    if (placement.hosts > 2 && !placement.encrypts) all.add(Feature::turns);
    if (placement.plans.are_used()) all.add(Feature::plans);
    if (!devices.fitted.empty()) all.add(Feature::devices);
    if (placement.encrypts) all.add(Feature::encryption);
    if (mortal) all.add(Feature::deaths);
    if (!steps.empty() && steps.back().kind == Kind::survive) all.add(Feature::survival);
    if (!leaving.empty()) all.add(Feature::leaving);
    if (!steps.empty() && steps.back().kind == Kind::replace) all.add(Feature::replace);
    if (!steps.empty() && steps.back().kind == Kind::files) all.add(Feature::files);
    if (keeps) all.add(Feature::keep);
    if (has_threads_) all.add(Feature::threads);
    return all;
}

std::string Script::describe() const {
    static constexpr const char* kNames[] = {"rail down", "rail up",    "rail silent", "rail heard",
                                             "death",     "device out", "device in"};
    std::string troubles;
    for (const Fault& fault : faults) {
        const bool death = fault.kind == Fault::Kind::death;
        std::string since = fault.step == UINT32_MAX ? "" : " after step " + std::to_string(fault.step);
        if (fault.call > 0) since += ", call " + std::to_string(fault.call);
        troubles += "\n  at " + std::to_string(fault.at / 1000) + " us" + since + ": " + kNames[static_cast<int>(fault.kind)] +
                    ", " +
                    (death ? "rank " + std::to_string(fault.rank)
                           : "host " + std::to_string(fault.host) + " rail " + std::to_string(fault.rail));
    }
    std::string values;
    for (const auto& [setting, value] : settings) values += "\n  " + setting + "=" + value;
    std::string fitted;
    for (size_t i = 0; i < devices.fitted.size(); ++i)
        if (devices.fitted[i]) fitted += " " + std::to_string(i / rails) + "." + std::to_string(i % rails);
    if (!fitted.empty()) values += "\n  devices" + fitted;
    for (size_t i = 0; i < placement.further.size(); ++i) {
        const FurtherJob& job = placement.further[i];
        values += "\n  job " + std::to_string(i + 1) + (job.starts_alone ? ", started alone," : "") + " on hosts";
        for (const uint32_t host : job.host_of_rank) values += " " + std::to_string(host);
    }
    return std::to_string(ranks) + " ranks on " + std::to_string(placement.hosts) + " hosts with " + std::to_string(rails) +
           " rails, " + std::to_string(steps.size()) + " steps, " + name + values + troubles;
}

}  // namespace starling::simulation
