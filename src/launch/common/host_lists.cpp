// Reads lists of hosts as users write them: on the command line, in host files, in info values.
#include <algorithm>
#include <iterator>

#include "launch/common/hosts.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr uint32_t kMostSlots = 1000000;

/// A host as one line or one item of a list names it.
struct NamedHost {
    HostSlots host;
    bool excluded = false;  ///< true: the user gave the host 0 slots, so that no process runs there
};

/// The effect of a word NAME=VALUE in a line of a host file.
enum class Setting { slots, user, unlimited, binding, interface };

struct SettingName {
    std::string_view name;
    Setting setting;
};

constexpr SettingName kSettings[] = {
    {"slots", Setting::slots},         {"cpu", Setting::slots},           {"cpus", Setting::slots},
    {"count", Setting::slots},         {"max_slots", Setting::unlimited}, {"max-slots", Setting::unlimited},
    {"slots_max", Setting::unlimited}, {"slots-max", Setting::unlimited}, {"cpus_max", Setting::unlimited},
    {"cpus-max", Setting::unlimited},  {"max_cpus", Setting::unlimited},  {"max-cpus", Setting::unlimited},
    {"user", Setting::user},           {"username", Setting::user},       {"user_name", Setting::user},
    {"user-name", Setting::user},      {"binding", Setting::binding},     {"ifhn", Setting::interface},
};

bool read_slots(std::string_view text, NamedHost& out) {
    if (!read_number(text, out.host.slots) || out.host.slots > kMostSlots) return false;
    out.excluded = out.host.slots == 0;
    return true;
}

// Reads "name" or "name:8"; an IPv6 address has more than one colon.
bool read_host(std::string_view text, NamedHost& out) {
    const size_t colon = text.rfind(':');
    const bool counted = colon != std::string_view::npos && (text.find(':') == colon || text[colon - 1] == ']');
    out = {{std::string(counted ? text.substr(0, colon) : text), 0}};
    return may_be_host(out.host.name) && (!counted || read_slots(text.substr(colon + 1), out));
}

std::string unknown_word(std::string_view word) {
    const std::string name = lowercase(word.substr(0, word.find('=')));
    std::string text = printable(word) + " is not known here";
    for (const SettingName& known : kSettings)
        if (edit_distance(known.name, name) == 1) return text + "; did you mean " + std::string(known.name) + "=...?";
    return text + "; a line is NAME, NAME:SLOTS or NAME slots=SLOTS";
}

void note(const char* sentence, std::vector<std::string>* notes) {
    if (notes && std::find(notes->begin(), notes->end(), sentence) == notes->end()) notes->push_back(sentence);
}

// Applies a word such as "slots=4". Returns an empty string, or a sentence that describes the error.
std::string apply_word(std::string_view word, NamedHost& out, std::vector<std::string>* notes) {
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) return unknown_word(word);
    const std::string name = lowercase(word.substr(0, equals));
    const std::string_view value = word.substr(equals + 1);
    const auto known =
        std::find_if(std::begin(kSettings), std::end(kSettings), [&](const SettingName& one) { return one.name == name; });
    if (known == std::end(kSettings)) return unknown_word(word);
    NamedHost unused;
    switch (known->setting) {
        case Setting::slots:
        case Setting::unlimited:
            if (!read_slots(value, known->setting == Setting::slots ? out : unused))
                return printable(word) + " does not name a number of processes (0 to " + std::to_string(kMostSlots) + ")";
            return {};
        case Setting::user:
            if (!may_be_host(std::string(value) + "@" + out.host.name)) return printable(word) + " is not the name of a user";
            out.host.name = std::string(value) + "@" + out.host.name;
            return {};
        case Setting::binding:
            note("binding= in the hostfile is ignored: --bind-to selects the cores", notes);
            return {};
        case Setting::interface:
            note("ifhn= in the hostfile is ignored: STARLING_DAEMON_INTERFACES and STARLING_IP_INTERFACES select the networks",
                 notes);
            return {};
    }
    return {};
}

// Returns the line without comment, and without blanks around '='.
std::string without_blanks(std::string_view line) {
    std::string out;
    line = line.substr(0, line.find('#'));
    for (const char c : line) {
        if (c == '=')
            while (!out.empty() && kBlank.find(out.back()) != std::string_view::npos) out.pop_back();
        if (kBlank.find(c) != std::string_view::npos && (out.empty() || out.back() == '=')) continue;
        out.push_back(c);
    }
    return out;
}

/// A growing list of hosts, with an index by name.
class HostList {
  public:
    explicit HostList(std::vector<HostSlots>& hosts) : hosts_(hosts) {
        for (size_t i = 0; i < hosts.size(); ++i) known_.try_emplace(lowercase(hosts[i].name), i);
    }
    void add(NamedHost named) {
        if (named.excluded) {
            ++excluded_;
            return;
        }
        HostSlots& host = named.host;
        const auto [at, fresh] = known_.try_emplace(lowercase(host.name), hosts_.size());
        if (fresh) {
            hosts_.push_back(std::move(host));
        } else {
            unite_slots(hosts_[at->second].slots, host.slots);
        }
    }
    size_t excluded() const { return excluded_; }

  private:
    std::vector<HostSlots>& hosts_;
    std::unordered_map<std::string, size_t> known_;
    size_t excluded_ = 0;  ///< number of hosts that were named with 0 slots
};

std::string read_line(std::string_view line, HostList& out, std::vector<std::string>* notes) {
    const std::string plain = without_blanks(line);
    std::string_view rest = plain;
    const std::string_view name = parse_word(rest);
    if (name.empty()) return {};
    NamedHost host;
    if (!read_host(name, host)) return printable(name) + " is neither a host nor host:slots";
    for (std::string_view word = parse_word(rest); !word.empty(); word = parse_word(rest)) {
        if (std::string problem = apply_word(word, host, notes); !problem.empty()) return problem;
    }
    out.add(std::move(host));
    return {};
}

}  // namespace

void unite_slots(uint32_t& slots, uint32_t more) { slots = std::max(slots, 1u) + std::max(more, 1u); }

void add_host(std::vector<HostSlots>& hosts, HostSlots host) { HostList(hosts).add({std::move(host)}); }

std::string read_hosts(std::string_view list, std::vector<HostSlots>& out) {
    if (list.empty()) return "the list of hosts is empty";
    const std::string_view all = list;
    HostList hosts(out);
    while (true) {
        const size_t comma = list.find(',');
        NamedHost host;
        if (!read_host(list.substr(0, comma), host))
            return printable(list.substr(0, comma)) + " is neither a host nor host:slots";
        hosts.add(std::move(host));
        if (comma == std::string_view::npos) break;
        list.remove_prefix(comma + 1);
    }
    return out.empty() ? "each host of " + printable(all) + " has 0 slots; name one with at least one slot" : std::string();
}

std::string read_hostfile(const std::string& path, std::vector<HostSlots>& out, std::vector<std::string>* notes) {
    HostList hosts(out);
    const std::string problem =
        read_lines("hostfile", path, [&](std::string_view line) { return read_line(line, hosts, notes); });
    if (!problem.empty() || !out.empty()) return problem;
    return hosts.excluded() > 0 ? "each host of the hostfile '" + path + "' has 0 slots; at least one slot is needed"
                                : "the hostfile '" + path + "' names no host";
}

}  // namespace starling::launch
