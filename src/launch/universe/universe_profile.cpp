// Profiles: passes reports of ranks to their job client, which writes the file.
#include "control/profile_report.h"
#include "launch/universe/universe_job.h"
#include "mpi.h"

namespace starling::launch {

void Universe::write_profiles_of(JobClient& patron) {
    patron.profile = std::make_unique<ProfileLines>([this](job::JobId id) {
        const UniverseJob* const job = find(id);
        return job ? &job->description : nullptr;
    });
}

void Universe::begin_profile(const UniverseJob& job) {
    if (job.patron && job.patron->profile)
        job.patron->write_profile(job.patron->profile->begin(job.description, job.spec.parent));
}

void Universe::on_profile(const UniverseJob& job, uint32_t host, const HostOrder& order) {
    control::NameReply reply;
    control::ProfileReport report;
    JobClient* const patron = job.patron;
    if (!decode(order.bytes, report)) {
        reply = {MPI_ERR_OTHER, "the request is invalid; use one version of Starling everywhere", {}};
    } else if (!patron || !patron->profile || !patron->write_profile(patron->profile->report(job.id(), order.rank, report))) {
        reply = {MPI_ERR_OTHER, "no profile is being written", {}};
    }
    answer(host, order, encode(reply));
}

void Universe::end_profile(const UniverseJob& job) {
    if (job.patron && job.patron->profile) job.patron->write_profile(job.patron->profile->end(job.id()));
}

}  // namespace starling::launch
