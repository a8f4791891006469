// Set operations on groups, comparison, and encoding as bytes.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/wire.h"
#include "comm/group.h"
#include "control/control_protocol.h"

namespace starling::comm {

namespace {

bool share_a_job(const Group& a, const Group& b) {
    for (const GroupRun& x : a.runs())
        for (const GroupRun& y : b.runs())
            if (x.job == y.job) return true;
    return false;
}

// Adds the members of `from` that are in `other` (or are not, if `inside` is false).
void add_filtered(GroupBuilder& builder, const Group& from, const Group& other, bool inside) {
    for (const GroupRun& run : from.runs()) {
        for (int i = 0; i < run.count; ++i) {
            const link::Process process = run.at(i);
            if ((other.rank_of(process) != MPI_UNDEFINED) == inside) builder.add(process);
        }
    }
}

struct EncodedRun {
    uint32_t job;
    int32_t first, stride, count;
};
constexpr std::size_t kEncodedJob = sizeof(job::JobId) + 2 * sizeof(int32_t) + sizeof(job::HostId);

std::vector<const link::Job*> jobs_of(const Group& group) {
    std::vector<const link::Job*> jobs;
    for (const GroupRun& run : group.runs())
        if (std::find(jobs.begin(), jobs.end(), run.job) == jobs.end()) jobs.push_back(run.job);
    return jobs;
}

void write_runs(Writer& writer, const Group& group, const std::vector<const link::Job*>& jobs) {
    writer.number(static_cast<uint32_t>(group.runs().size()));
    for (const GroupRun& run : group.runs()) {
        const auto job = std::find(jobs.begin(), jobs.end(), run.job) - jobs.begin();
        writer.number(static_cast<uint32_t>(job)).number(run.first).number(run.stride).number(run.count);
    }
}

bool plausible(const EncodedRun& run, std::size_t jobs, int64_t total) {
    if (run.job >= jobs || run.first < 0 || run.count < 1 || run.stride == 0) return false;
    const int64_t last = run.first + static_cast<int64_t>(run.stride) * (run.count - 1);
    const int64_t limit = std::numeric_limits<int32_t>::max();
    return last >= 0 && last <= limit && total + run.count <= limit;
}

}  // namespace

Group* concatenate(const Group& a, const Group& b) {
    GroupBuilder builder;
    builder.add(a);
    builder.add(b);
    // A group received from another process belongs to no session here. A group made from that one and a group of our session belongs to
    // our session.
    return builder.build(a.session ? a.session : b.session);
}

Group* union_of(const Group& a, const Group& b) {
    if (!share_a_job(a, b)) return concatenate(a, b);
    GroupBuilder builder;
    builder.add(a);
    if (!a.identical(b)) add_filtered(builder, b, a, false);
    return builder.build(a.session);
}

Group* intersection_of(const Group& a, const Group& b) {
    GroupBuilder builder;
    if (a.identical(b))
        builder.add(a);
    else if (share_a_job(a, b))
        add_filtered(builder, a, b, true);
    return builder.build(a.session);
}

Group* difference_of(const Group& a, const Group& b) {
    GroupBuilder builder;
    if (!share_a_job(a, b))
        builder.add(a);
    else if (!a.identical(b))
        add_filtered(builder, a, b, false);
    return builder.build(a.session);
}

Group* include(const Group& group, std::span<const int> ranks) {
    GroupBuilder builder;
    for (const int rank : ranks) builder.add(group.at(rank));
    return builder.build(group.session);
}

Group* exclude(const Group& group, const std::vector<bool>& excluded) {
    GroupBuilder builder;
    const int size = group.size();
    for (int rank = 0; rank < size;) {
        int end = rank;
        while (end < size && !excluded[static_cast<std::size_t>(end)]) ++end;
        if (end > rank) builder.add_slice(group, rank, 1, end - rank);
        rank = end + 1;
    }
    return builder.build(group.session);
}

int compare(const Group& a, const Group& b) {
    if (a.identical(b)) return MPI_IDENT;
    if (a.size() != b.size()) return MPI_UNEQUAL;
    for (const GroupRun& run : a.runs())
        for (int i = 0; i < run.count; ++i)
            if (b.rank_of(run.at(i)) == MPI_UNDEFINED) return MPI_UNEQUAL;
    return MPI_SIMILAR;
}

bool disjoint(const Group& a, const Group& b) {
    if (!share_a_job(a, b)) return true;
    const Group& smaller = a.size() < b.size() ? a : b;
    const Group& larger = &smaller == &a ? b : a;
    for (const GroupRun& run : smaller.runs())
        for (int i = 0; i < run.count; ++i)
            if (larger.rank_of(run.at(i)) != MPI_UNDEFINED) return false;
    return true;
}

std::string encode(const Group& group) {
    const std::vector<const link::Job*> jobs = jobs_of(group);
    Writer writer;
    writer.number(static_cast<uint32_t>(jobs.size()));
    for (const link::Job* job : jobs) control::write(writer, job->address());
    write_runs(writer, group, jobs);
    return writer.take();
}

std::string fingerprint(const Group& group) {
    const std::vector<const link::Job*> jobs = jobs_of(group);
    Writer writer;
    for (const link::Job* job : jobs) writer.number(job->address().id);
    write_runs(writer, group, jobs);
    return writer.take();
}

Group* decode_group(std::string_view bytes) {
    const auto malformed = [] {
        fail(MPI_ERR_OTHER,
             "the received description of a group of processes is malformed; use one version of Starling on "
             "all hosts");
        return nullptr;
    };
    Reader reader(bytes);
    std::vector<link::Job*> jobs;
    for (uint32_t left = reader.count(kEncodedJob); left > 0; --left) {
        const job::JobAddress address = control::read_address(reader);
        if (address.id == 0 || address.owner_pid <= 0 || address.owner_fd < 0) return malformed();
        jobs.push_back(link::find_job(address));
    }
    GroupBuilder builder;
    int64_t total = 0;
    for (uint32_t left = reader.count(sizeof(EncodedRun)); left > 0; --left) {
        EncodedRun run;
        run.job = reader.number<uint32_t>();
        run.first = reader.number<int32_t>();
        run.stride = reader.number<int32_t>();
        run.count = reader.number<int32_t>();
        if (!plausible(run, jobs.size(), total)) return malformed();
        total += run.count;
        builder.add(GroupRun{jobs[run.job], run.first, run.stride, run.count});
    }
    return reader.done() ? builder.build() : malformed();
}

}  // namespace starling::comm
