#include "summary.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace starling {

namespace {

using OrderedJson = nlohmann::ordered_json;

void print_line(const std::string& title, const std::string& text) { fmt::print("  {}: {}\n", title, text); }

// Returns the state of a transport without its properties: "not usable: why", or "usable".
std::string state_of(const OrderedJson& transports, const std::string& name) {
    if (!transports.contains(name)) return "unknown";
    const std::string state = transports[name];
    return state.substr(0, state.find("; "));
}

std::string networks_of(const OrderedJson& list) {
    std::vector<std::string> used, unused;
    for (const OrderedJson& one : list) {
        const std::string interface = one["interface"], address = one["address"];
        if (!one["used"] && address.starts_with("127.")) continue;
        (one["used"] ? used : unused).push_back(interface + " " + address + (one["running"] ? "" : " (link down)"));
    }
    constexpr size_t kShown = 4;
    const size_t more = used.size() > kShown ? used.size() - kShown : 0;
    used.resize(used.size() - more);
    std::string text = fmt::format("{}", fmt::join(used, ", "));
    if (more > 0) text += fmt::format(", and {} more", more);
    if (used.empty()) text = "none but loopback";
    return text + (unused.empty() ? "" : fmt::format(" (not used: {})", fmt::join(unused, ", ")));
}

// Returns the states of all ports of InfiniBand and RoCE devices, or why there are none.
std::string verbs_of(const OrderedJson& transports) {
    std::string text;
    for (const auto& [name, state] : transports.items()) {
        if (!name.starts_with("verbs")) continue;
        const std::string port = name == "verbs" ? "" : name.substr(6) + " ";
        text += (text.empty() ? "" : ", ") + port + state_of(transports, name);
    }
    return text;
}

std::string functions_of(const OrderedJson& counts) {
    const int built = counts["built"], all = counts["all"];
    return built == all ? fmt::format("all {}", all) : fmt::format("{} of {} (--missing lists the others)", built, all);
}

std::string settings_of(const OrderedJson& variables) {
    std::vector<std::string> changed;
    for (const OrderedJson& row : variables) {
        if (!row.contains("source") || row["source"] == "default") continue;
        const std::string name = row["name"], value = row["value"], source = row["source"];
        if (name == "STARLING_CONFIG") continue;  // the summary has a line on the file
        changed.push_back(fmt::format("{}={} ({})", name, value, source));
    }
    if (changed.empty()) return "all at their defaults";
    constexpr size_t kShown = 4;
    const size_t more = changed.size() > kShown ? changed.size() - kShown : 0;
    changed.resize(changed.size() - more);
    return fmt::format("{}{}", fmt::join(changed, ", "), more > 0 ? fmt::format(", and {} more", more) : "");
}

std::string missing_files(const OrderedJson& files) {
    std::vector<std::string> missing;
    for (const auto& [file, path] : files.items())
        if (path == "missing") missing.push_back(file);
    return missing.empty() ? "complete" : fmt::format("missing are {}; reinstall Starling", fmt::join(missing, ", "));
}

}  // namespace

void print_summary(const OrderedJson& all) {
    const OrderedJson &here = all["installation"], &transports = all["transports"];
    fmt::print("Starling {} (wire {}), MPI {}, standard ABI {}\n", here["version"].get<std::string>(),
               here["wire"].get<std::string>(), here["mpi"].get<std::string>(), here["abi"].get<std::string>());
    print_line("prefix", here["prefix"]);
    print_line("files", missing_files(here["files"]));
    print_line("launcher", here["launcher"]);
    print_line("programs of other MPIs", here["shims"]);
    print_line("MPI functions", functions_of(all["functions"]));
    print_line("OpenSHMEM functions", functions_of(all["shmem_functions"]));
    print_line("shared memory",
               state_of(transports, "shm") + "; kernel copies: " + state_of(transports, "kernel copy (process_vm_readv)"));
    print_line("networks", networks_of(all["networks"]));
    print_line("InfiniBand and RoCE", verbs_of(transports));
    print_line("multicast", state_of(transports, "multicast"));
    print_line("configuration file", here["configuration_file"]);
    print_line("settings", settings_of(all["variables"]));
    fmt::print("`starling info --all` lists transports, protocols, collectives, variables and counters.\n");
}

}  // namespace starling
