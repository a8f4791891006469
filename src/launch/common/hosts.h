// The hosts that a job may use, as --host, --hostfile and the info keys of the same names specify them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace starling::launch {

/// A host as the user named it.
struct HostSlots {
    std::string name;
    uint32_t slots = 0;  ///< number of processes that fit on the host; 0: one per core
    bool operator==(const HostSlots&) const = default;
};

/// Returns true for localhost, its addresses, and this machine's name with or without its domain. All functions here ignore the case of
/// names.
bool is_this_machine(std::string_view host);

/// Returns this machine's name.
const std::string& host_name();

/// Returns whether both names mean one host: they are equal, or differ only in the domain, or both mean this machine.
bool same_host(std::string_view a, std::string_view b);

/// Maps names of hosts to their numbers. find() treats names as equal like same_host(), but does not compare with each name.
class HostNames {
  public:
    static constexpr uint32_t kNone = ~0u;
    /// Adds a host. If the name exists already, it keeps its number.
    void add(std::string_view name, uint32_t host);
    uint32_t find(std::string_view name) const;

  private:
    std::unordered_map<std::string, uint32_t> by_name_, by_short_name_;
    uint32_t this_machine_ = kNone;
};

/// Returns whether `name` can be the name of a host. Names are put on command lines, so no other characters are allowed, whatever their
/// source.
bool may_be_host(std::string_view name);

/// Reads "host[:slots],host..." and adds the hosts to `out`; a host that is named again gets more slots, and a host with 0 slots is left
/// out. Returns an empty string, or a sentence that describes the error.
std::string read_hosts(std::string_view list, std::vector<HostSlots>& out);

/// Reads a file with one host per line, in the forms of Open MPI and of MPICH (docs/launch.md), and adds the hosts to `out`. A host with 0
/// slots is left out. Returns an empty string, or a sentence that describes the error with file and line. `notes`, if not null, gets a
/// sentence for each setting that is accepted and not used.
std::string read_hostfile(const std::string& path, std::vector<HostSlots>& out, std::vector<std::string>* notes = nullptr);

/// Adds `more` to the slots of a host that is listed again. In the style of batch systems, a host that is listed n times has n slots.
void unite_slots(uint32_t& slots, uint32_t more);

/// Adds a host; if the list has it already, adds its slots.
void add_host(std::vector<HostSlots>& hosts, HostSlots host);

}  // namespace starling::launch
