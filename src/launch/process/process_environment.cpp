#include "launch/process/process_environment.h"

#include <unistd.h>

#include <algorithm>

#include "job/environment.h"
#include "launch/common/processor_placement.h"

namespace starling::launch {

namespace {
char* const kNone[] = {nullptr};
}

ProcessEnvironment::ProcessEnvironment(const Program& program, char* const* base, const std::vector<std::string>& over,
                                       const std::string& job, const std::string& mark)
    : base_(program.forward == Forward::none ? kNone : base) {
    const std::string size = std::string(job::kSizeVariable) + "=";
    for (char* const* entry = base_; *entry; ++entry) within_a_rank_ |= std::string_view(*entry).starts_with(size);
    for (const std::string& entry : over) {
        const size_t equals = entry.find('=');
        if (equals != std::string::npos && equals > 0)
            add(std::string_view(entry).substr(0, equals), std::string_view(entry).substr(equals + 1));
    }
    for (const auto& [name, value] : program.environment)
        if (name != kProcessorsVariable) add(name, value);  // a message from mpiexec to the launchers
    add(job::kJobVariable, job);
    add("STARLING_CHECKED", "1");  // tells the process that mpiexec or the parent has already reported bad settings
    add(mark.substr(0, mark.find('=')), mark.substr(mark.find('=') + 1));
    per_process_.push_back({add(job::kRankVariable, ""), RankNumber::rank});
    lay_out();
}

void ProcessEnvironment::add_numbers(const JobNumbers& job, const ForeignNames& foreign) {
    for (const RankVariable& variable : rank_variables()) {
        if (variable.family && !(foreign.*variable.family)) {
            dropped_.push_back(variable.name);
            continue;
        }
        const uint32_t value = variable.number == RankNumber::size         ? job.size
                               : variable.number == RankNumber::local_size ? job.local_size
                                                                           : job.host;
        const size_t index = add(variable.name, std::to_string(value));
        if (is_per_process(variable.number)) per_process_.push_back({index, variable.number});
    }
    lay_out();
}

char* const* ProcessEnvironment::for_rank(uint32_t rank, uint32_t local_rank) {
    for (const PerProcess& variable : per_process_) {
        own_[variable.index] =
            names_[variable.index] + "=" + std::to_string(variable.number == RankNumber::rank ? rank : local_rank);
        pointers_[first_own_ + variable.index] = own_[variable.index].data();
    }
    return pointers_.data();
}

std::string_view ProcessEnvironment::value(std::string_view name) const {
    for (char* entry : pointers_) {
        const std::string_view text = entry ? entry : "";
        if (text.size() > name.size() && text.starts_with(name) && text[name.size()] == '=')
            return text.substr(name.size() + 1);
    }
    return {};
}

void ProcessEnvironment::set(std::string_view name, std::string_view value) {
    add(name, value);
    lay_out();
}

void ProcessEnvironment::lay_out() {
    pointers_.clear();
    for (char* const* entry = base_; *entry; ++entry) {
        if (!overridden(*entry)) pointers_.push_back(*entry);
    }
    first_own_ = pointers_.size();
    for (std::string& entry : own_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
}

// Returns the entry's index in `own_`.
size_t ProcessEnvironment::add(std::string_view name, std::string_view value) {
    std::string entry = std::string(name) + "=" + std::string(value);
    const auto known = std::find(names_.begin(), names_.end(), name);
    if (known != names_.end()) {
        const auto index = static_cast<size_t>(known - names_.begin());
        own_[index] = std::move(entry);
        return index;
    }
    names_.emplace_back(name);
    own_.push_back(std::move(entry));
    return own_.size() - 1;
}

bool ProcessEnvironment::overridden(std::string_view entry) const {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (std::find(names_.begin(), names_.end(), name) != names_.end()) return true;
    return within_a_rank_ && std::find(dropped_.begin(), dropped_.end(), name) != dropped_.end();
}

std::vector<std::string> forwarded_environment(const std::vector<std::string>& environment, Forward forward) {
    std::vector<std::string> out;
    if (forward == Forward::none) return out;
    for (const std::string& entry : environment) {
        const bool usual = entry.starts_with("STARLING_") || entry.starts_with("SHMEM_") || entry.starts_with("SMA_") ||
                           entry.starts_with("PATH=") || entry.starts_with("LD_LIBRARY_PATH=");
        if (usual || forward == Forward::all) out.push_back(entry);
    }
    return out;
}

std::vector<std::string> own_environment() {
    std::vector<std::string> out;
    for (char** entry = environ; entry && *entry; ++entry) out.emplace_back(*entry);
    return out;
}

}  // namespace starling::launch
