// The environment that a process starts with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// A program's environment: a base, the program's own on top, and Starling's. Built once per program; only the rank
/// differs from process to process.
class ProcessEnvironment {
  public:
    /// `base`: entries NAME=value that end with null; must outlive this. `over`: further entries on top of it. `job`:
    /// the address for STARLING_JOB. `mark`: an entry that all processes of this launcher carry.
    ProcessEnvironment(const Program& program, char* const* base, const std::vector<std::string>& over, const std::string& job,
                       const std::string& mark);
    ProcessEnvironment(const ProcessEnvironment&) = delete;
    ProcessEnvironment& operator=(const ProcessEnvironment&) = delete;

    /// For execve; valid until the next call.
    char* const* for_rank(uint32_t rank);
    std::string_view value(std::string_view name) const;
    /// Instead of what it was, for all processes.
    void set(std::string_view name, std::string_view value);

  private:
    void add(std::string_view name, std::string_view value);
    void lay_out();
    bool overridden(std::string_view entry) const;

    char* const* const base_;
    std::vector<std::string> own_;
    std::vector<std::string> names_;
    std::vector<char*> pointers_;
    size_t rank_ = 0, rank_slot_ = 0;
};

/// What of an environment goes to other hosts unless more or less is asked for: STARLING_..., PATH, LD_LIBRARY_PATH.
std::vector<std::string> forwarded_environment(const std::vector<std::string>& environment, Forward forward);

/// This process's environment as strings.
std::vector<std::string> own_environment();

}  // namespace starling::launch
