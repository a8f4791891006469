#include "info.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/config_file.h"
#include "base/counters.h"
#include "base/recovery_defaults.h"
#include "base/version.h"
#include "collective/select.h"
#include "control/start_server.h"
#include "copies/copies.h"
#include "functions.h"
#include "message/protocol/table.h"
#include "networks.h"
#include "summary.h"
#include "transports.h"

namespace starling {

namespace {

using OrderedJson = nlohmann::ordered_json;

const char* name(VariableSource source) {
    constexpr const char* kNames[] = {"default", "file", "environment", "program"};
    return kNames[static_cast<int>(source)];
}

const char* name(VariableType type) {
    constexpr const char* kNames[] = {"integer", "size", "flag", "choice", "text", "reserved"};
    return kNames[static_cast<int>(type)];
}

const char* name(VariableScope scope) {
    constexpr const char* kNames[] = {"job", "process", "process, at any time", "launcher"};
    return kNames[static_cast<int>(scope)];
}

std::string printed(const Variable& variable, const Config& from) {
    char text[4096];
    print_value(variable, from, text, sizeof text);
    return text;
}

// Returns the path of mpiexec, and whether it would find the daemon that it starts on other hosts.
std::string launcher(const std::filesystem::path& prefix) {
    std::error_code ignored;
    const std::filesystem::path path = prefix / "bin/mpiexec";
    if (!std::filesystem::exists(path, ignored)) return "missing: " + path.string();
    const std::string daemon = control::find_starlingd();
    return path.string() + (daemon.empty() ? "; starlingd is missing, which starts processes on other hosts" : "");
}

std::string configuration_file() {
    char path[4096];
    if (!config_file_path(path, sizeof path)) return "none is read";
    std::error_code ignored;
    return std::string(path) + (std::filesystem::exists(path, ignored) ? "" : " (does not exist)");
}

std::string shims(const std::filesystem::path& prefix) {
    std::error_code ignored;
    std::string found;
    for (const auto& [file, name] : {std::pair{"lib/compat/mpich/libmpi.so.12", "MPICH, Intel MPI and MVAPICH"},
                                     std::pair{"lib/compat/openmpi/libmpi.so.40", "Open MPI"}})
        if (std::filesystem::exists(prefix / file, ignored)) found += (found.empty() ? "" : "; ") + std::string(name);
    return found.empty() ? "none: lib/compat is missing" : found;
}

OrderedJson installation() {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path prefix = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
    OrderedJson out;
    out["version"] = kThisVersion.release;
    out["wire"] = std::to_string(kThisVersion.major) + "." + std::to_string(kThisVersion.minor);
    out["mpi"] = "5.0";
    out["abi"] = "1.0";
    out["prefix"] = prefix.string();
    for (const char* file : {"lib/libmpi_abi.so.1", "lib/liboshmem.so.1", "include/mpi.h", "include/shmem.h", "bin/mpicc",
                             "bin/oshcc", "bin/mpiexec"}) {
        const fs::path path = prefix / file;
        out["files"][file] = fs::exists(path, ignored) ? path.string() : "missing";
    }
    out["launcher"] = launcher(prefix);
    out["shims"] = shims(prefix);
    out["configuration_file"] = configuration_file();
    return out;
}

OrderedJson variable_list() {
    OrderedJson out = OrderedJson::array();
    size_t count = 0;
    const Variable* rows = variables(count);
    const Config defaults;
    for (const Variable* v = rows; v != rows + count; ++v) {
        OrderedJson row{{"name", v->name}, {"type", name(v->type)}};
        if (v->type != VariableType::reserved) {
            row["value"] = printed(*v, config());
            row["default"] = printed(*v, defaults);
            if (const RecoveryDefault* const other = find_recovery_default(v->name))
                row["default_with_recovery"] = std::to_string(other->value);
            row["source"] = name(source_of(*v));
            row["scope"] = name(v->scope);
        }
        if (v->type == VariableType::integer || v->type == VariableType::size)
            row.update({{"least", v->least}, {"most", v->most}, {"unit", v->unit}});
        for (const char* const* choice = v->choices; choice && *choice; ++choice) row["choices"].push_back(*choice);
        row["doc"] = v->doc;
        out.push_back(row);
    }
    return out;
}

OrderedJson counter_list() {
    constexpr const char* kKinds[] = {"counter", "level", "timer"};
    size_t count = 0, groups = 0;
    const Counter* rows = counter_table(count);
    const CounterGroupInfo* group = counter_groups(groups);
    OrderedJson out = OrderedJson::array();
    for (const Counter* row = rows; row != rows + count; ++row) {
        out.push_back({{"name", row->name},
                       {"kind", kKinds[static_cast<int>(row->kind)]},
                       {"unit", row->unit},
                       {"group", group[static_cast<int>(row->group)].name},
                       {"doc", row->doc}});
    }
    return out;
}

OrderedJson function_counts(std::span<const Function> all_functions) {
    std::map<std::string, std::pair<int, int>> topics;
    int built = 0;
    for (const Function& f : all_functions) {
        auto& [have, all] = topics[f.topic];
        have += f.built;
        built += f.built;
        ++all;
    }
    OrderedJson out{{"built", built}, {"all", all_functions.size()}};
    for (const auto& [topic, counts] : topics) out["topics"][topic] = {counts.first, counts.second};
    return out;
}

OrderedJson function_names(bool missing_only) {
    OrderedJson out = OrderedJson::array();
    for (const auto list : {functions(), shmem_functions()})
        for (const Function& f : list)
            if (!f.built || !missing_only)
                out.push_back({{"name", f.name}, {"topic", f.topic}, {"since", f.since}, {"built", f.built}});
    return out;
}

OrderedJson transport_list() {
    OrderedJson out = OrderedJson::object();
    for (const TransportReport& report : transports()) out[report.name] = report.state;
    return out;
}

OrderedJson network_list() {
    OrderedJson out = OrderedJson::array();
    for (const NetworkReport& one : networks())
        out.push_back({{"interface", one.interface}, {"address", one.address}, {"running", one.running}, {"used", one.used}});
    return out;
}

OrderedJson protocol_list() {
    size_t count = 0;
    const message::Protocol* rows = message::protocols(count);
    OrderedJson out = OrderedJson::array();
    for (const message::Protocol* row = rows; row != rows + count; ++row)
        out.push_back({{"name", row->name}, {"when", row->when}, {"costs", row->costs}, {"instead", row->instead}});
    return out;
}

// Collects the parts that the options name. `overview`: adds the installation and the numbers of functions.
OrderedJson collect(const InfoOptions& parts, bool overview) {
    OrderedJson out;
    if (overview) out["installation"] = installation();
    if (parts.transports) out["transports"] = transport_list();
    if (parts.transports) out["networks"] = network_list();
    if (parts.protocols) out["protocols"] = protocol_list();
    if (parts.copies) out["copies"] = measure_all_copies();
    if (parts.collectives) {
        collective::read_overrides();
        out["collectives"] = collective::describe_selection();
    }
    if (overview) out["functions"] = function_counts(functions());
    if (overview) out["shmem_functions"] = function_counts(shmem_functions());
    if (parts.variables) out["variables"] = variable_list();
    if (parts.counters) out["counters"] = counter_list();
    if (parts.functions || parts.missing) out["function_list"] = function_names(!parts.functions);
    return out;
}

// Wraps text at blanks into lines of at most `width` characters.
std::string wrapped(std::string text, size_t width, const std::string& indent) {
    std::string out;
    while (!text.empty()) {
        size_t cut = text.size() <= width ? text.size() : text.rfind(' ', width);
        if (cut == std::string::npos || cut == 0) cut = text.size();
        out += indent + text.substr(0, cut) + "\n";
        text.erase(0, cut + 1);
    }
    return out;
}

void print_variable(const OrderedJson& row) {
    const std::string variable = row["name"], doc = row["doc"];
    if (row["type"] == "reserved") {
        fmt::print("  {}\n{}", variable, wrapped(doc, 90, "      "));
        return;
    }
    const std::string value = row["value"], source = row["source"], scope = row["scope"];
    std::string takes = row["type"];
    if (row.contains("choices")) {
        takes.clear();
        for (const std::string choice : row["choices"]) takes += (takes.empty() ? "" : " | ") + choice;
    } else if (row.contains("unit")) {
        takes =
            fmt::format("{} to {} {}", row["least"].get<int64_t>(), row["most"].get<int64_t>(), row["unit"].get<std::string>());
    }
    std::string origin = source;
    if (row.contains("default_with_recovery") && source == "default")
        origin += ", with --enable-recovery " + row["default_with_recovery"].get<std::string>();
    fmt::print("  {} = {}   ({}; {}; per {})\n{}", variable, value.empty() ? "(unset)" : value, origin, takes, scope,
               wrapped(doc, 90, "      "));
}

// Prints the protocols, in the order in which they are considered.
void print_protocols(const OrderedJson& list) {
    fmt::print(
        "\nProtocols: how a message moves; the first that can serve it and pays, or the one of STARLING_LONG_PROTOCOL\n");
    for (const OrderedJson& row : list) {
        const std::string instead = row["instead"];
        fmt::print("  {}\n{}{}", row["name"].get<std::string>(), wrapped(row["when"], 90, "      "),
                   wrapped("costs " + row["costs"].get<std::string>(), 90, "      "));
        if (!instead.empty()) fmt::print("{}", wrapped("where it can't: " + instead, 90, "      "));
    }
}

// Prints the counters by group, each group with its description.
void print_counters(const OrderedJson& list) {
    size_t groups = 0;
    const CounterGroupInfo* group = counter_groups(groups);
    fmt::print("\nCounters of every process, for `starling top` and MPI_T\n");
    for (const CounterGroupInfo* g = group; g != group + groups; ++g) {
        fmt::print(" {}: {}\n", g->name, g->doc);
        for (const OrderedJson& row : list) {
            if (row["group"] != g->name) continue;
            fmt::print("  {}   ({} of {})\n{}", row["name"].get<std::string>(), row["kind"].get<std::string>(),
                       row["unit"].get<std::string>(), wrapped(row["doc"], 90, "      "));
        }
    }
}

void print(const OrderedJson& all) {
    if (all.contains("installation")) {
        const OrderedJson& here = all["installation"];
        fmt::print("Starling {} (wire {}), MPI {}, standard ABI {}\n  prefix: {}\n", here["version"].get<std::string>(),
                   here["wire"].get<std::string>(), here["mpi"].get<std::string>(), here["abi"].get<std::string>(),
                   here["prefix"].get<std::string>());
        for (const auto& [file, path] : here["files"].items())
            if (path == "missing") fmt::print("  {}: missing\n", file);
    }
    if (all.contains("transports")) {
        fmt::print("\nTransports\n");
        for (const auto& [transport, state] : all["transports"].items())
            fmt::print("  {}: {}\n", transport, state.get<std::string>());
    }
    if (all.contains("networks")) {
        fmt::print("\nNetworks, by interface\n");
        for (const OrderedJson& one : all["networks"])
            fmt::print("  {} {}: {}{}\n", one["interface"].get<std::string>(), one["address"].get<std::string>(),
                       one["used"] ? "used" : "not used (STARLING_IP_INTERFACES)", one["running"] ? "" : ", link down");
    }
    if (all.contains("protocols")) print_protocols(all["protocols"]);
    if (all.contains("copies")) print_copies(all["copies"]);
    if (all.contains("collectives"))
        fmt::print("\nCollectives: the algorithm of each call\n{}", all["collectives"].get<std::string>());
    for (const auto& [key, standard] : {std::pair{"functions", "MPI"}, std::pair{"shmem_functions", "OpenSHMEM"}}) {
        if (!all.contains(key)) continue;
        const OrderedJson& counts = all[key];
        fmt::print("\n{} functions: {} of {} built; --missing lists the others\n", standard, counts["built"].get<int>(),
                   counts["all"].get<int>());
        for (const auto& [topic, pair] : counts["topics"].items())
            fmt::print("  {:26} {:3} of {:3}\n", topic, pair[0].get<int>(), pair[1].get<int>());
    }
    if (all.contains("variables")) {
        fmt::print("\nVariables\n");
        for (const OrderedJson& row : all["variables"]) print_variable(row);
    }
    if (all.contains("counters")) print_counters(all["counters"]);
    if (all.contains("function_list")) {
        for (const OrderedJson& row : all["function_list"])
            fmt::print("{:40} {:26} {:10} {}\n", row["name"].get<std::string>(), row["topic"].get<std::string>(),
                       row["since"].get<std::string>(), row["built"].get<bool>() ? "built" : "missing");
    }
}

}  // namespace

int info(const InfoOptions& options) {
    read_config(true);
    const bool named = options.variables || options.missing || options.functions || options.transports || options.collectives ||
                       options.counters || options.protocols || options.copies;
    const bool overview = options.all || !named, summary = overview && !options.all && !options.json;
    InfoOptions parts = options;
    if (overview) parts.transports = parts.variables = true;
    if (overview && !summary) parts.protocols = parts.collectives = parts.counters = true;
    const OrderedJson all = collect(parts, overview);
    if (options.json)
        fmt::print("{}\n", all.dump(2));
    else if (summary)
        print_summary(all);
    else
        print(all);
    return 0;
}

}  // namespace starling
