// PMIx, through the plugin that is installed beside the library.
#include <dlfcn.h>

#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "bootstrap/manager.h"
#include "bootstrap/pmix_hosts.h"
#include "bootstrap/pmix_plugin.h"
#include "mpi.h"

namespace starling::bootstrap {

namespace {

class PmixManager final : public Manager {
  public:
    explicit PmixManager(const PmixPlugin& plugin) : plugin_(plugin) {}

    const char* protocol() const override { return "PMIx"; }
    int start(ManagedJob& out) override;
    int put(std::string_view key, std::string_view value) override;
    int publish() override { return result(plugin_.commit(problem_, sizeof problem_)); }
    int lookup(uint32_t rank, std::string_view key, LookupCallback found, void* context, bool& asked) override;
    // OpenPMIx's server (4.2.2) may never reply to a process that connects while another one of its job exits on the same host.
    bool waits_for_late() const override { return true; }
    int leave() override { return result(plugin_.leave(problem_, sizeof problem_)); }
    void abort(int code, std::string_view text) override { plugin_.abort(code, std::string(text).c_str()); }

  private:
    int result(int code) const {
        return code == 0 ? MPI_SUCCESS : fail(MPI_ERR_OTHER, "the PMIx process manager reported an error: %s", problem_);
    }

    const PmixPlugin& plugin_;
    char problem_[512] = "";
};

// The caller's callback of one look-up, passed through PMIx's thread.
struct LookUp {
    LookupCallback found;
    void* context;
};

void on_found(void* context, uint32_t rank, const char* value, bool later) {
    auto* request = static_cast<LookUp*>(context);
    const LookupOutcome outcome = value ? LookupOutcome::found : later ? LookupOutcome::too_early : LookupOutcome::nothing;
    request->found(request->context, rank, outcome, value ? value : "");
    delete request;
}

int PmixManager::start(ManagedJob& out) {
    PmixJob job{};
    if (const int error = result(plugin_.start(&job, problem_, sizeof problem_))) return error;
    out.name = job.name;
    out.rank = job.rank;
    out.size = job.size;
    out.appnum = job.appnum;
    out.universe_size = job.universe_size;
    const std::string hosts = job.hosts ? job.hosts : "";
    std::free(job.hosts);
    if (parse_pmix_hosts(hosts, out.size, out.placements, out.hosts)) return MPI_SUCCESS;
    return fail(MPI_ERR_OTHER,
                "the PMIx process manager does not report the hosts of all %u ranks, only '%.100s'; start the program with "
                "Starling's mpiexec",
                out.size, hosts.c_str());
}

int PmixManager::put(std::string_view key, std::string_view value) {
    return result(plugin_.put(std::string(key).c_str(), std::string(value).c_str(), problem_, sizeof problem_));
}

int PmixManager::lookup(uint32_t rank, std::string_view key, LookupCallback found, void* context, bool& asked) {
    asked = true;
    auto* request = new LookUp{found, context};
    const int code = plugin_.get(rank, std::string(key).c_str(), on_found, request, problem_, sizeof problem_);
    if (code != 0) delete request;
    return result(code);
}

// Returns the path of the plugin, beside the object file that contains this code.
std::string plugin_path() {
    Dl_info info;
    char self[PATH_MAX];
    if (!dladdr(reinterpret_cast<void*>(&make_pmix_manager), &info) || !info.dli_fname || !realpath(info.dli_fname, self))
        return kPmixPluginFile;
    std::string path(self);
    return path.substr(0, path.rfind('/') + 1) + kPmixPluginFile;
}

}  // namespace

std::unique_ptr<Manager> make_pmix_manager() {
    const std::string path = plugin_path();
    // Never unloaded: PMIx's thread may run until the process ends.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fail(MPI_ERR_OTHER, "%s", dlerror());
        return nullptr;
    }
    const auto* plugin = static_cast<const PmixPlugin*>(dlsym(library, kPmixPluginSymbol));
    if (!plugin || plugin->version != kPmixPluginVersion) {
        fail(MPI_ERR_OTHER, "%s is of another version of Starling than this library; install both from one release",
             path.c_str());
        return nullptr;
    }
    return std::make_unique<PmixManager>(*plugin);
}

}  // namespace starling::bootstrap
