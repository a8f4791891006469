// Which hosts a job may use: --host, --hostfile and the info keys of the same names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

/// A host as the user named it.
struct HostSlots {
    std::string name;
    uint32_t slots = 0;  ///< processes that have room there; 0: as many as it has cores
    bool operator==(const HostSlots&) const = default;
};

/// True for localhost, its addresses, and this machine's name with or without its domain.
bool is_this_machine(std::string_view host);

/// This machine's name.
const std::string& host_name();

/// True if both name one host: equal, or one is the other with its domain, or both are this machine.
bool same_host(std::string_view a, std::string_view b);

/// Reads "host[:slots],host..." and adds to `out`; a host named again gets more slots. An empty string, or the sentence
/// that tells what is wrong.
std::string read_hosts(std::string_view list, std::vector<HostSlots>& out);

/// The same for a file with one host per line ("name [slots=N] [max_slots=N]" or "name:N", # begins a comment). The
/// sentence names file and line.
std::string read_hostfile(const std::string& path, std::vector<HostSlots>& out);

/// Adds a host, or its slots to one that is there already.
void add_host(std::vector<HostSlots>& hosts, HostSlots host);

}  // namespace starling::launch
