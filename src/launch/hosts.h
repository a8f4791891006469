// Where processes may run. One machine so far: names of it are known, others are refused by name.
#pragma once

#include <string>
#include <string_view>

namespace starling::launch {

/// True for localhost, its addresses, and this machine's name with or without its domain.
bool is_this_machine(std::string_view host);

/// This machine's name.
const std::string& host_name();

/// Checks "host[:slots],host..."; an empty string if all are this machine, else a sentence naming the first
/// other.
std::string check_hosts(std::string_view list);

/// The same for a file with one host per line ("name [slots=N]" or "name:N", # begins a comment). The
/// sentence names file and line.
std::string check_hostfile(const std::string& path);

}  // namespace starling::launch
