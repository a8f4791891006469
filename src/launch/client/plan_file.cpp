#include "launch/client/plan_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/config.h"
#include "base/size_classes.h"
#include "control/control_protocol.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

using Json = nlohmann::json;
using control::PlannedPeer;

constexpr unsigned kVersion = 1;
constexpr uint64_t kMostRanks = control::kMaxProcesses;
constexpr size_t kMostFileBytes = 1 << 30;

/// Exception with the error and its place as one sentence.
struct Wrong {
    std::string sentence;
};

[[noreturn]] void refuse(const std::string& where, const std::string& what) { throw Wrong{where + " " + what}; }

uint64_t number(const Json& value, const std::string& where, uint64_t least, uint64_t most) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() < least || value.get<uint64_t>() > most)
        refuse(where, "is not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return value.get<uint64_t>();
}

/// Returns the object's member `name`; throws if it is missing.
const Json& member(const Json& of, const char* name, const std::string& where) {
    const auto found = of.find(name);
    if (found == of.end()) refuse(where, std::string("has no \"") + name + "\"");
    return *found;
}

uint64_t limit(const Json& plan, const char* name) {
    const auto found = plan.find(name);
    if (found == plan.end() || found->is_null()) return control::PlanLimits::kNone;
    return number(*found, std::string("\"") + name + "\"", 0, INT32_MAX);
}

uint32_t rank_of(const std::string& key, uint32_t size, const std::string& where) {
    uint32_t rank = 0;
    if (!read_number(key, rank) || rank >= size)
        refuse(where, "names \"" + key + "\", which is not a rank of " + std::to_string(size));
    return rank;
}

std::vector<PlannedPeer> read_peers(const Json& list, uint32_t rank, uint32_t size, const std::string& where) {
    if (!list.is_array()) refuse(where, "is not a list of pairs [rank, priority]");
    std::vector<PlannedPeer> peers;
    for (const Json& pair : list) {
        if (!pair.is_array() || pair.size() != 2) refuse(where, "is not a list of pairs [rank, priority]");
        const auto peer = static_cast<uint32_t>(number(pair[0], "a peer of " + where, 0, size - 1));
        const auto priority = static_cast<uint32_t>(number(pair[1], "a priority of " + where, 1, UINT32_MAX));
        if (peer == rank) refuse(where, "has the rank itself among its peers");
        peers.push_back({peer, priority});
    }
    std::vector<uint32_t> ranks;
    for (const PlannedPeer& peer : peers) ranks.push_back(peer.rank);
    std::sort(ranks.begin(), ranks.end());
    if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) refuse(where, "has a peer twice");
    std::stable_sort(peers.begin(), peers.end(), [](const auto& a, const auto& b) { return a.priority > b.priority; });
    return peers;
}

Plan::PlanPhase read_phase(const Json& from, uint32_t size, std::string where) {
    if (!from.is_object()) refuse(where, "is not an object");
    Plan::PlanPhase phase;
    const Json& name = member(from, "name", where);
    if (!name.is_string() || name.get_ref<const std::string&>().size() > 1000)
        refuse(where + " \"name\"", "is not a string of at most 1000 characters");
    phase.name = name.get<std::string>();
    where += " (\"" + phase.name + "\")";
    phase.from = number(member(from, "from", where), where + " \"from\"", 1, UINT32_MAX);
    const Json& to = member(from, "to", where);
    phase.to = to.is_null() ? control::kForever : number(to, where + " \"to\"", phase.from, UINT32_MAX);
    const Json& peers = member(from, "peers", where);
    if (!peers.is_object()) refuse(where + " \"peers\"", "is not an object whose keys are ranks");
    for (const auto& [key, list] : peers.items()) {
        const uint32_t rank = rank_of(key, size, where + " \"peers\"");
        const std::string place = where + ", peers of rank " + std::to_string(rank);
        if (!phase.peers.emplace(rank, read_peers(list, rank, size, place)).second) refuse(place, "occur twice");
    }
    return phase;
}

const std::string& word(const Json& value, const std::string& where) {
    const auto* text = value.get_ptr<const Json::string_t*>();
    const auto in_words = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (!text || text->empty() || text->size() > 64 || !std::all_of(text->begin(), text->end(), in_words))
        refuse(where, "is not a word of 1 to 64 lower-case letters, digits and underscores");
    return *text;
}

// Reads one entry of "collectives". The algorithm's name is checked by the processes, which know the algorithms.
std::string read_collective(const Json& from, const std::string& where, std::set<std::string>& known) {
    if (!from.is_object()) refuse(where, "is not an object");
    std::string kind = word(member(from, "kind", where), where + " \"kind\"");
    std::string variable = "STARLING_COLL_" + kind;
    for (char& c : variable) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (!find_variable(variable.c_str()))
        refuse(where + " \"kind\"", "is \"" + kind + "\", which is not a collective operation");
    const Json& size = member(from, "size", where);
    if (!size.is_string() || size_class_named(size.get_ref<const std::string&>()) == kSizeClassCount)
        refuse(where + " \"size\"", "is not one of <=64, <=1K, <=16K, <=256K and >256K");
    const uint64_t processes = number(member(from, "processes", where), where + " \"processes\"", 2, kMostRanks);
    const std::string place = kind + "/" + size.get<std::string>() + "/" + std::to_string(processes);
    if (!known.insert(place).second) refuse(where, "occurs twice: " + place);
    return place + "=" + word(member(from, "algorithm", where), where + " \"algorithm\"");
}

// Returns the entries as text for an environment variable, which may have at most 128 KB.
std::string read_collectives(const Json& plan) {
    constexpr size_t kMost = 100'000;
    const auto found = plan.find("collectives");
    if (found == plan.end()) return {};
    if (!found->is_array()) refuse("\"collectives\"", "is not a list");
    std::string all;
    std::set<std::string> known;
    for (size_t i = 0; i < found->size(); ++i)
        all += (i > 0 ? ";" : "") + read_collective((*found)[i], "collective " + std::to_string(i + 1), known);
    if (all.size() > kMost) refuse("\"collectives\"", "is too long");
    return all;
}

// Rejects overlapping entries, so that each occurrence of a phase is in one entry only.
void check_overlaps(const std::vector<Plan::PlanPhase>& phases) {
    std::vector<const Plan::PlanPhase*> sorted;
    for (const Plan::PlanPhase& phase : phases) sorted.push_back(&phase);
    std::sort(sorted.begin(), sorted.end(),
              [](const auto* a, const auto* b) { return std::tie(a->name, a->from) < std::tie(b->name, b->from); });
    for (size_t i = 1; i < sorted.size(); ++i)
        if (sorted[i - 1]->name == sorted[i]->name && sorted[i - 1]->to >= sorted[i]->from)
            refuse("phase \"" + sorted[i]->name + "\"",
                   "has occurrence " + std::to_string(sorted[i]->from) + " in two entries");
}

void read_all(const Json& json, Plan& out) {
    if (!json.is_object()) refuse("it", "is not an object");
    if (!json.contains("starling_plan")) refuse("it", "is not a plan of Starling: it has no \"starling_plan\"");
    const uint64_t version = number(json["starling_plan"], "\"starling_plan\"", 1, UINT32_MAX);
    if (version != kVersion)
        refuse("it",
               "has version " + std::to_string(version) + ", and this Starling reads version " + std::to_string(kVersion));
    const Json& application = member(json, "application", "it");
    if (!application.is_string()) refuse("\"application\"", "is not a name");
    out.application = application.get<std::string>();
    out.size = static_cast<uint32_t>(number(member(json, "size", "it"), "\"size\"", 1, kMostRanks));
    out.limits = {limit(json, "max_direct"), limit(json, "max_connections"), limit(json, "eager_limit")};
    const Json& phases = member(json, "phases", "it");
    if (!phases.is_array()) refuse("\"phases\"", "is not a list");
    for (size_t i = 0; i < phases.size(); ++i)
        out.phases.push_back(read_phase(phases[i], out.size, "phase " + std::to_string(i + 1)));
    check_overlaps(out.phases);
    out.collectives = read_collectives(json);
}

// Shortens a message of the parser: [json.exception.parse_error.101] parse error at line 3, column 4: syntax error ...
std::string plain(const std::string& what) {
    const size_t at = what.find("] ");
    return "it is not JSON: " + (at == std::string::npos ? what : what.substr(at + 2));
}

}  // namespace

std::string parse_plan(std::string_view text, Plan& out) {
    out = {};
    try {
        read_all(Json::parse(text), out);
    } catch (const Wrong& wrong) { return wrong.sentence; } catch (const Json::exception& error) {
        return plain(error.what());
    }
    return {};
}

namespace {

/// Reads the file, or a pipe. Returns an empty string, or the reason for the failure. Bytes that no plan has end the reading: they may come
/// without end.
std::string read_plan_text(const std::string& path, std::string& text) {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), std::fclose);
    if (!file) return std::string(" can't be read: ") + std::strerror(errno);
    struct stat status;
    if (fstat(fileno(file.get()), &status) == 0 && S_ISCHR(status.st_mode))
        return " is a device: name a file that `starling profile plan` has written";
    char chunk[8 << 10];
    for (size_t bytes; (bytes = std::fread(chunk, 1, sizeof chunk, file.get())) > 0; text.append(chunk, bytes)) {
        if (std::memchr(chunk, 0, bytes)) return ": it is not JSON: it has a zero byte";
        if (text.size() + bytes > kMostFileBytes) return " has more than " + number_of(kMostFileBytes, "byte");
    }
    return std::ferror(file.get()) ? std::string(" can't be read: ") + std::strerror(errno) : std::string();
}

}  // namespace

std::string read_plan(const std::string& path, std::vector<Program>& programs, Plan& out) {
    std::string text;
    if (const std::string wrong = read_plan_text(path, text); !wrong.empty()) return "the plan " + path + wrong;
    if (const std::string wrong = parse_plan(text, out); !wrong.empty()) return "the plan " + path + ": " + wrong;
    if (programs.size() == 1 && programs[0].uncounted && programs[0].per_host == 0) {
        programs[0].count = out.size;
        programs[0].uncounted = false;
    }
    // The root compares the size of the plan with a number that depends on the hosts.
    const bool open = std::any_of(programs.begin(), programs.end(), [](const Program& one) { return one.uncounted; });
    uint32_t size = 0;
    for (const Program& program : programs) size += program.count;
    if (open) size = out.size;
    const std::string& command = programs[0].argv[0];
    if (out.is_for(command, size)) return {};
    const std::string is_for = "the plan " + path + " is for " + std::to_string(out.size) + " processes of " + out.application;
    if (out.is_for(command, out.size))
        return is_for + ", and these are " + std::to_string(size) + ": `starling profile plan --size " + std::to_string(size) +
               "` creates one for that number";
    return is_for + ", and this is " + command;
}

}  // namespace starling::launch
