// Which hosts a job may use: --host, --hostfile and the info keys of the same names.
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
    uint32_t slots = 0;  ///< processes that have room there; 0: as many as it has cores
    bool operator==(const HostSlots&) const = default;
};

/// True for localhost, its addresses, and this machine's name with or without its domain. Names have no case, here and below.
bool is_this_machine(std::string_view host);

/// This machine's name.
const std::string& host_name();

/// True if both name one host: equal, or one is the other with its domain, or both are this machine.
bool same_host(std::string_view a, std::string_view b);

/// Hosts by their names, each with a number: finds what same_host() would find among them, without comparing with each.
class HostNames {
  public:
    static constexpr uint32_t kNone = ~0u;
    /// A name that is there already keeps its host.
    void add(std::string_view name, uint32_t host);
    uint32_t find(std::string_view name) const;

  private:
    std::unordered_map<std::string, uint32_t> by_name_, by_short_name_;
    uint32_t this_machine_ = kNone;
};

/// Whether a text can be the name of a host. It goes on command lines, so nothing else may stand there, whoever has chosen it.
bool may_be_host(std::string_view name);

/// Reads "host[:slots],host..." and adds to `out`; a host named again gets more slots. An empty string, or the sentence
/// that tells what is wrong.
std::string read_hosts(std::string_view list, std::vector<HostSlots>& out);

/// The same for a file with one host per line ("name [slots=N] [max_slots=N]" or "name:N", # begins a comment). The
/// sentence names file and line.
std::string read_hostfile(const std::string& path, std::vector<HostSlots>& out);

/// The slots of a host that is listed twice: as batch systems write it, a host that is listed n times has n slots.
void unite_slots(uint32_t& slots, uint32_t more);

/// Adds a host, or its slots to one that is there already.
void add_host(std::vector<HostSlots>& hosts, HostSlots host);

}  // namespace starling::launch
