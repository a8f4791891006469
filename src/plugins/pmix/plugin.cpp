// The PMIx plugin: implements the functions of bootstrap/pmix_plugin.h with OpenPMIx's client library. Loaded when PMIX_* is in the
// environment, and never unloaded.
#include <pmix.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "bootstrap/pmix_plugin.h"

namespace {

using starling::bootstrap::PmixFound;
using starling::bootstrap::PmixJob;
using starling::bootstrap::PmixPlugin;

pmix_proc_t myself;

int report_failure(const char* step, pmix_status_t status, char* problem, size_t size) {
    if (status == PMIX_SUCCESS) return 0;
    std::snprintf(problem, size, "%s failed: %s", step, PMIx_Error_string(status));
    return 1;
}

pmix_proc_t process(uint32_t rank) {
    pmix_proc_t out;
    PMIX_LOAD_PROCID(&out, myself.nspace, rank);
    return out;
}

// Reads a number that the manager knows about `who`; returns false if it does not.
bool read_number(const pmix_proc_t& who, const char* key, uint32_t& out) {
    pmix_value_t* value = nullptr;
    if (PMIx_Get(&who, key, nullptr, 0, &value) != PMIX_SUCCESS || !value) return false;
    pmix_status_t status;
    PMIX_VALUE_GET_NUMBER(status, value, out, uint32_t);
    PMIX_VALUE_RELEASE(value);
    return status == PMIX_SUCCESS;
}

// Appends the ranks of one host as "rank,rank,…;".
bool append_ranks(const char* host, std::string& out) {
    pmix_proc_t* procs = nullptr;
    size_t count = 0;
    if (PMIx_Resolve_peers(host, myself.nspace, &procs, &count) != PMIX_SUCCESS) return false;
    for (size_t i = 0; i < count; ++i) {
        if (i > 0) out.push_back(',');
        out += std::to_string(procs[i].rank);
    }
    out.push_back(';');
    PMIX_PROC_FREE(procs, count);
    return true;
}

pmix_status_t list_hosts(std::string& out) {
    char* names = nullptr;
    const pmix_status_t status = PMIx_Resolve_nodes(myself.nspace, &names);
    if (status != PMIX_SUCCESS) return status;
    bool ok = names != nullptr;
    char* rest = nullptr;
    for (char* name = names ? strtok_r(names, ",", &rest) : nullptr; ok && name; name = strtok_r(nullptr, ",", &rest)) {
        out += std::string(name) + ":";
        ok = append_ranks(name, out);
    }
    std::free(names);
    return ok ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND;
}

int start(PmixJob* job, char* problem, size_t size) {
    pmix_status_t status = PMIx_Init(&myself, nullptr, 0);
    if (status != PMIX_SUCCESS) return report_failure("PMIx_Init", status, problem, size);
    std::snprintf(job->name, sizeof job->name, "%s", myself.nspace);
    job->rank = myself.rank;
    const pmix_proc_t all = process(PMIX_RANK_WILDCARD);
    if (!read_number(all, PMIX_JOB_SIZE, job->size)) return report_failure("PMIX_JOB_SIZE", PMIX_ERR_NOT_FOUND, problem, size);
    if (!read_number(all, PMIX_UNIV_SIZE, job->universe_size)) job->universe_size = 0;
    if (!read_number(myself, PMIX_APPNUM, job->appnum)) job->appnum = 0;
    std::string hosts;
    status = list_hosts(hosts);
    if (status != PMIX_SUCCESS)
        return report_failure("the query for the job's hosts and ranks (PMIx_Resolve_nodes, PMIx_Resolve_peers)", status,
                              problem, size);
    job->hosts = strdup(hosts.c_str());
    return 0;
}

int put(const char* key, const char* text, char* problem, size_t size) {
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_STRING;
    value.data.string = strdup(text);
    const pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key, &value);
    PMIX_VALUE_DESTRUCT(&value);
    return report_failure("PMIx_Put", status, problem, size);
}

int commit(char* problem, size_t size) { return report_failure("PMIx_Commit", PMIx_Commit(), problem, size); }

// Counts requests without a reply. If a reply arrives when the last of the job's processes on its host has left, OpenPMIx's server (4.2.2)
// fails and never ends, and neither does the job. So a process waits for its replies before it leaves. It does not wait forever, because a
// rank may never call MPI, and its server may wait for that.
class Unanswered {
  public:
    void add() {
        const std::lock_guard lock(mutex_);
        ++count_;
    }
    void remove() {
        const std::lock_guard lock(mutex_);
        if (--count_ == 0) none_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        none_.wait_for(lock, kPatience, [this] { return count_ == 0; });
    }

  private:
    static constexpr std::chrono::seconds kPatience{5};
    std::mutex mutex_;
    std::condition_variable none_;
    size_t count_ = 0;
};

// Never destroyed: PMIx's thread may run until the process ends.
Unanswered& unanswered() {
    static auto* const instance = new Unanswered;
    return *instance;
}

struct PmixRequest {
    PmixFound found;
    void* context;
    uint32_t rank;
};

void on_value(pmix_status_t status, pmix_value_t* value, void* context) {
    auto* request = static_cast<PmixRequest*>(context);
    const bool text = status == PMIX_SUCCESS && value && value->type == PMIX_STRING;
    // Some servers reply when the other process has committed; others reply at once that there is no value.
    const bool later = status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT;
    request->found(request->context, request->rank, text ? value->data.string : nullptr, later);
    delete request;
    unanswered().remove();
}

int get(uint32_t rank, const char* key, PmixFound found, void* context, char* problem, size_t size) {
    const pmix_proc_t who = process(rank);
    auto* request = new PmixRequest{found, context, rank};
    unanswered().add();
    const pmix_status_t status = PMIx_Get_nb(&who, key, nullptr, 0, on_value, request);
    if (status == PMIX_SUCCESS) return 0;
    unanswered().remove();
    delete request;
    return report_failure("PMIx_Get_nb", status, problem, size);
}

int leave(char* problem, size_t size) {
    unanswered().wait();
    return report_failure("PMIx_Finalize", PMIx_Finalize(nullptr, 0), problem, size);
}

void abort_job(int code, const char* text) { PMIx_Abort(code, text, nullptr, 0); }

}  // namespace

extern "C" __attribute__((visibility("default"))) const PmixPlugin starling_pmix_plugin;
const PmixPlugin starling_pmix_plugin = {
    starling::bootstrap::kPmixPluginVersion, start, put, commit, get, leave, abort_job,
};
