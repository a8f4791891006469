// The script's part in several jobs: jobs that start beside the first one, spawns, ports, merges and disconnections. All choices draw from a
// separate random sequence.
#include <algorithm>

#include "script.h"

namespace starling::simulation {

namespace {

constexpr size_t kMostJobs = 4, kMostCommunitiesOfJobs = 36;

bool are_disjoint(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    return std::none_of(a.begin(), a.end(), [&b](uint32_t number) { return std::find(b.begin(), b.end(), number) != b.end(); });
}

}  // namespace

bool Script::spans_jobs(const Community& of) const {
    const auto job_of = [this](uint32_t number) {
        return std::count_if(placement.further.begin(), placement.further.end(),
                             [number](const FurtherJob& job) { return number >= job.first; });
    };
    std::vector<uint32_t> all = of.members;
    all.insert(all.end(), of.remote.begin(), of.remote.end());
    return std::any_of(all.begin(), all.end(), [&](uint32_t number) { return job_of(number) != job_of(all[0]); });
}

void Script::begin_jobs(Random& random) {
    if (mortal || random.one_in(2)) return;
    add_job(random, true);
}

// Adds a job and its MPI_COMM_WORLD. Returns the job's number.
uint32_t Script::add_job(Random& random, bool starts_alone) {
    FurtherJob job;
    job.first = processes();
    job.starts_alone = starts_alone;
    const uint64_t size = random.one_in(4) ? random.between(1, 8) : random.between(1, 3);
    const bool scattered = random.one_in(2);
    const uint64_t home = random.below(placement.hosts);
    for (uint64_t rank = 0; rank < size; ++rank)
        job.host_of_rank.push_back(static_cast<uint32_t>(scattered ? random.below(placement.hosts) : home));
    Community& world = communities.emplace_back();
    for (uint32_t rank = 0; rank < size; ++rank) world.members.push_back(job.first + rank);
    world.predefined = true;
    released_.push_back(false);
    placement.further.push_back(std::move(job));
    doomed.resize(processes(), false);
    ScriptJob& made = jobs.emplace_back();
    made.world = static_cast<uint32_t>(communities.size()) - 1;
    return static_cast<uint32_t>(jobs.size()) - 1;
}

// Adds the two entries of an inter-communicator.
void Script::add_inter(const std::vector<uint32_t>& members, const std::vector<uint32_t>& remote) {
    communities.push_back({members, remote});
    communities.push_back({remote, members, false, true});
    released_.insert(released_.end(), 2, false);
}

// Returns a communicator that is not released; 0, MPI_COMM_WORLD, if the drawn one is of the other kind.
uint32_t Script::draw_community(Random& random, bool inter) {
    const auto drawn = static_cast<uint32_t>(random.below(communities.size()));
    const Community& of = communities[drawn];
    return released_[drawn] || of.second || of.is_inter() != inter ? 0 : drawn;
}

void Script::write_jobs(Random& random) {
    const bool full = communities.size() + 4 > kMostCommunitiesOfJobs, may_spawn = !full && jobs.size() < kMostJobs;
    const uint64_t kind = random.below(10);
    // If ranks may die, one rank spawns alone: members of a larger communicator could get different results.
    if (mortal) {
        if (may_spawn) write_spawn(random, add_self(random));
    } else if (kind < 3) {
        if (may_spawn) write_spawn(random, random.one_in(4) ? add_self(random) : draw_community(random, false));
    } else if (kind < 6 && !full) {
        write_connect(random);
    } else {
        write_between_jobs(random);
    }
}

// Adds the MPI_COMM_SELF of a random process, and returns its index.
uint32_t Script::add_self(Random& random) {
    Community& self = communities.emplace_back();
    self.members.push_back(static_cast<uint32_t>(random.one_in(3) ? random.below(processes()) : random.below(ranks)));
    self.predefined = true;
    released_.push_back(false);
    return static_cast<uint32_t>(communities.size()) - 1;
}

void Script::write_spawn(Random& random, uint32_t community) {
    Step step{};
    step.kind = Kind::spawn;
    step.comm = community;
    const std::vector<uint32_t> parents = communities[step.comm].members;
    step.from = static_cast<int>(random.below(parents.size()));
    if (random.one_in(6)) {
        step.count = static_cast<uint32_t>(random.between(1, 3));
        add(step);
        return;
    }
    step.job = add_job(random, false);
    ScriptJob& job = jobs[step.job];
    const std::vector<uint32_t> children = communities[job.world].members;
    // Number of processes of the first command; the others belong to a second one.
    step.count = static_cast<uint32_t>(random.one_in(3) ? random.between(1, children.size()) : children.size());
    step.made = static_cast<uint32_t>(communities.size());
    job.parent = step.made + 1;
    job.first_step = static_cast<uint32_t>(steps.size());
    add_inter(parents, children);
    add(step);
}

void Script::write_connect(Random& random) {
    Step step{};
    step.kind = Kind::connect;
    for (int attempt = 0; attempt < 8; ++attempt) {
        step.comm = draw_community(random, false);
        step.other = draw_community(random, false);
        const std::vector<uint32_t> here = communities[step.comm].members, there = communities[step.other].members;
        if (!are_disjoint(here, there)) continue;
        step.from = static_cast<int>(random.below(here.size()));
        step.to = static_cast<int>(random.below(there.size()));
        step.made = static_cast<uint32_t>(communities.size());
        step.any_tag = random.one_in(2);  // whether the port's name is published
        add_inter(here, there);
        add(step);
        return;
    }
}

// Kills children, some in MPI_Init, and parents that wait for their children.
void Script::add_deaths_in_spawns(Random random) {
    static constexpr uint64_t kWithin[] = {100'000, 1'000'000, 5'000'000, 60'000'000};
    for (const Step& step : steps) {
        if (step.kind != Kind::spawn || step.job == 0) continue;
        const uint32_t parent = communities[step.comm].members[0];
        if (random.one_in(3)) {
            doomed[parent] = true;
            faults.push_back({Fault::Kind::death, random.below(random.one_of(kWithin)), 0, 0, parent, step.id});
        }
        for (const uint32_t child : communities[step.made].remote) {
            if (!random.one_in(5)) continue;
            doomed[child] = true;
            faults.push_back({Fault::Kind::death, random.below(random.one_of(kWithin)), 0, 0, child, UINT32_MAX});
        }
    }
    for (uint32_t job = 1; job < jobs.size(); ++job)
        if (may_be_forsaken(job))
            for (const uint32_t number : communities[jobs[job].world].members) doomed[number] = true;
}

// Returns whether the launcher may end a whole job: because a child dies in MPI_Init, or with the job of the parents.
bool Script::may_be_forsaken(uint32_t job) const {
    const std::vector<uint32_t>& members = communities[jobs[job].world].members;
    if (std::any_of(members.begin(), members.end(), [this](uint32_t number) { return doomed[number]; })) return true;
    const uint32_t parent = communities[steps[jobs[job].first_step].comm].members[0];
    return parent >= ranks && doomed[parent];
}

void Script::write_across(Random& random, Step step) {
    static constexpr uint32_t kCounts[] = {0, 1, 4, 40, 600, 6000};
    step.kind = Kind::across;
    do {
        step.collective = static_cast<Collective>(random.below(kCollectives));
    } while (step.collective == Collective::reduce_scatter || step.collective == Collective::scan ||
             step.collective == Collective::exscan);  // the two last do not exist across groups
    const uint64_t size = communities[step.comm].members.size() + communities[step.comm].remote.size();
    step.count = static_cast<uint32_t>(random.below(std::min<uint64_t>(random.one_of(kCounts), bytes_left_ / 8 / size) + 1));
    bytes_left_ -= step.count * 8 * size;
    step.send = random.one_in(2) ? SendWay::send : SendWay::isend;
    step.waits = random.one_in(2);
    add(step);
}

// Merges, disconnects or frees an inter-communicator.
void Script::write_between_jobs(Random& random) {
    Step step{};
    for (int attempt = 0; attempt < 8 && step.comm == 0; ++attempt) step.comm = draw_community(random, true);
    if (step.comm == 0) return;
    if (random.one_in(3)) {
        step.kind = random.one_in(3) ? Kind::release : Kind::disconnect;
        released_[step.comm] = released_[step.comm + 1] = true;
        add(step);
        return;
    }
    if (communities.size() >= kMostCommunitiesOfJobs) return;
    step.kind = Kind::merge;
    step.any_tag = random.one_in(2);
    step.made = static_cast<uint32_t>(communities.size());
    Community merged = communities[step.comm];
    const std::vector<uint32_t> remote = std::move(merged.remote);
    merged.remote.clear();
    merged.members.insert(step.any_tag ? merged.members.begin() : merged.members.end(), remote.begin(), remote.end());
    communities.push_back(std::move(merged));
    released_.push_back(false);
    add(step);
}

}  // namespace starling::simulation
