// The functions of Launcher that select and report the processors of ranks.
#include <sched.h>

#include <memory>
#include <utility>

#include "job/places.h"
#include "launch/common/text.h"
#include "launch/process/launcher.h"
#include "launch/process/output.h"

namespace starling::launch {

namespace {

// Returns the request that mpiexec has put into the environment of the job's programs.
std::string requested_processors(const JobSpec& spec) {
    for (const Program& program : spec.programs)
        for (const auto& [name, value] : program.environment)
            if (name == kProcessorsVariable) return value;
    return {};
}

}  // namespace

std::string Launcher::claim_processors(LocalJob& job, const JobSpec& spec) {
    ProcessorPlacement wanted;
    if (const std::string text = requested_processors(spec); !ProcessorPlacement::parse(text, wanted))
        return "the placement '" + text + "' is not understood on this host; install the same release there as mpiexec's";
    if (!wanted.is_set() && job.style.binding != Binding::core) return {};
    if (!wanted.is_set()) wanted.bind = ProcessorPart::core;
    if (processors_.empty()) {
        if (std::string problem = load_processors(processors_); !problem.empty()) return problem;
    }
    std::vector<ProcessorClaim> claims;
    std::string problem = processors_.claim(wanted, static_cast<uint32_t>(job.ranks.size()), claims);
    for (size_t local = 0; local < claims.size(); ++local)
        job.ranks[local].processors = std::make_unique<ProcessorClaim>(std::move(claims[local]));
    return problem;
}

void Launcher::release_processors(LocalRank& rank) {
    if (rank.processors) processors_.release(*rank.processors);
    rank.processors.reset();
}

void Launcher::count_cores(const LocalJob& job) {
    use_.reset();
    if (job.style.binding != Binding::automatic || job.ranks.empty() || job.ranks[0].processors) return;
    CoreUse use;
    for (const LocalJob& other : jobs_)
        if (&other != &job) use.add(other.segment);
    for (const int32_t launcher : other_launchers()) add_jobs_of(launcher, use);
    ranks_of_others_ = use.ranks();
    // With more ranks than cores, leave the placement to the kernel, which has to share the cores anyway.
    if (use.ranks() + job.ranks.size() <= cores_allowed()) use_ = std::move(use);
}

void Launcher::assign_cores(LocalJob& job, uint32_t rank, StartCores& cores, ProcessStart& start) {
    std::atomic<uint32_t>& place = job.segment.place(job.segment.local_index(rank));
    if (const ProcessorClaim* claim = job.at(rank).processors.get()) {
        start.cpus = &claim->cpus;
        job.segment.cell(rank).cpu = claim->first;
        place.store(job::CpuLocation::on(claim->first));
    } else if (use_ && sched_getaffinity(0, sizeof cores.usable, &cores.usable) == 0) {
        cores.cpus = use_->least_used(cores.usable, siblings_of);
        start.begin_on = &cores.cpus;
        start.usable = &cores.usable;
        start.place = &place;
    }
}

void Launcher::report_binding(LocalJob& job, uint32_t rank) {
    const ProcessorClaim* claim = job.at(rank).processors.get();
    const uint32_t word = job.segment.place(job.segment.local_index(rank)).load() & job::CpuLocation::kCpu;
    const char* host = job.segment.host(job.segment.header().my_host).name;
    std::string text = "rank " + std::to_string(rank) + " on " + host;
    if (claim)
        text += " is bound to " + processors_.text_of(*claim);
    else if (use_ && word != job::CpuLocation::kNowhere)
        text += " begins on core " + std::to_string(word - 1) + " and is not bound";
    else if (job.style.binding != Binding::automatic)
        text += " is not bound";
    else if (job.ranks.size() > cores_allowed())
        text += " is not bound: there are more ranks than cores";
    else
        text += " is not bound: your other jobs have " + number_of(ranks_of_others_, "rank") + " on the " +
                number_of(cores_allowed(), "core") + " here";
    // The lines of other hosts travel like the job's standard error.
    if (job.style.capture)
        output().add_line(job.id(), 2, "mpiexec: " + text);
    else
        print("%s", text.c_str());
}

}  // namespace starling::launch
