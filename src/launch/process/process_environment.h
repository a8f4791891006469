// The environment that a process starts with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/common/job_spec.h"
#include "launch/process/rank_variables.h"

namespace starling::launch {

/// A program's environment: a base, overridden by the program's own entries and Starling's. Built once per program; only the rank differs
/// between its processes.
class ProcessEnvironment {
  public:
    /// `base`: entries NAME=value, null-terminated; must outlive this object. `over`: entries that override it. `job`: the address for
    /// STARLING_JOB. `mark`: an entry that all processes of this launcher have.
    ProcessEnvironment(const Program& program, char* const* base, const std::vector<std::string>& over, const std::string& job,
                       const std::string& mark);
    ProcessEnvironment(const ProcessEnvironment&) = delete;
    ProcessEnvironment& operator=(const ProcessEnvironment&) = delete;

    /// Adds the variables that show a process's place in the job (rank_variables.h).
    void add_numbers(const JobNumbers& job, const ForeignNames& foreign);
    /// Returns the environment for execve; valid until the next call. `local_rank`: number of the process among those of its host.
    char* const* for_rank(uint32_t rank, uint32_t local_rank);
    std::string_view value(std::string_view name) const;
    /// Replaces a variable for all processes.
    void set(std::string_view name, std::string_view value);

  private:
    size_t add(std::string_view name, std::string_view value);
    void lay_out();
    bool overridden(std::string_view entry) const;

    char* const* const base_;
    std::vector<std::string> own_;
    std::vector<std::string> names_;
    std::vector<char*> pointers_;
    size_t first_own_ = 0;  ///< index in `pointers_` of the first entry of `own_`
    /// A variable whose value differs between processes.
    struct PerProcess {
        size_t index;  ///< index in `own_`
        RankNumber number;
    };
    std::vector<PerProcess> per_process_;
    bool within_a_rank_ = false;             ///< true: the base has the variables of an outer job
    std::vector<std::string_view> dropped_;  ///< other launchers' variables that an outer job has set, and this one does not
};

/// Returns the entries that go to other hosts: STARLING_..., PATH and LD_LIBRARY_PATH, unless `forward` requests more or less.
std::vector<std::string> forwarded_environment(const std::vector<std::string>& environment, Forward forward);

/// Returns this process's environment as strings.
std::vector<std::string> own_environment();

}  // namespace starling::launch
