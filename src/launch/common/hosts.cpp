#include "launch/common/hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr uint32_t kMostSlots = 1000000;

bool read_slots(std::string_view text, uint32_t& out) { return read_number(text, out) && out > 0 && out <= kMostSlots; }

// Reads "name" or "name:8"; an IPv6 address has more than one colon.
bool read_host(std::string_view text, HostSlots& out) {
    const size_t colon = text.rfind(':');
    const bool counted = colon != std::string_view::npos && (text.find(':') == colon || text[colon - 1] == ']');
    out = {std::string(counted ? text.substr(0, colon) : text), 0};
    return may_be_host(out.name) && (!counted || read_slots(text.substr(colon + 1), out.slots));
}

// Reads the rest of a hostfile line after the name: "slots=4 max_slots=8" and similar.
bool read_settings(std::string_view rest, HostSlots& out) {
    for (std::string_view word = parse_word(rest); !word.empty(); word = parse_word(rest)) {
        const size_t equals = word.find('=');
        uint32_t number = 0;
        if (equals == 0 || equals == std::string_view::npos) return false;
        if (!read_slots(word.substr(equals + 1), number)) return false;
        if (word.substr(0, equals) == "slots") out.slots = number;
    }
    return true;
}

std::string lower(std::string_view name) {
    std::string out(name);
    std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

/// A growing list of hosts, with an index by name.
class HostList {
  public:
    explicit HostList(std::vector<HostSlots>& hosts) : hosts_(hosts) {
        for (size_t i = 0; i < hosts.size(); ++i) known_.try_emplace(lower(hosts[i].name), i);
    }
    void add(HostSlots host) {
        const auto [at, fresh] = known_.try_emplace(lower(host.name), hosts_.size());
        if (fresh) {
            hosts_.push_back(std::move(host));
        } else {
            unite_slots(hosts_[at->second].slots, host.slots);
        }
    }

  private:
    std::vector<HostSlots>& hosts_;
    std::unordered_map<std::string, size_t> known_;
};

std::string read_line(std::string_view line, HostList& out) {
    line = line.substr(0, line.find('#'));
    const size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlank), line.size());
    HostSlots host;
    if (!read_host(line.substr(0, end), host) || !read_settings(line.substr(end), host)) {
        return printable(line) + " is not of the form 'host [slots=N]' or 'host:N'";
    }
    out.add(std::move(host));
    return {};
}

std::string_view without_domain(std::string_view name) {
    const bool address = !name.empty() && name.find_first_not_of("0123456789.") == std::string_view::npos;
    return address ? name : name.substr(0, name.find('.'));
}

bool is_own_address(std::string_view host) {
    in_addr wanted{};
    if (inet_pton(AF_INET, std::string(host).c_str(), &wanted) != 1) return false;
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) return false;
    bool found = false;
    for (const ifaddrs* a = all; a && !found; a = a->ifa_next) {
        if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET) continue;
        found = reinterpret_cast<const sockaddr_in*>(a->ifa_addr)->sin_addr.s_addr == wanted.s_addr;
    }
    freeifaddrs(all);
    return found;
}

}  // namespace

bool may_be_host(std::string_view name) {
    // ssh could take a name that begins with '-' for an option.
    return !name.empty() && name.size() < 256 && name[0] != '-' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) || (c != '\0' && std::strchr(".-_:[]@", c));
    });
}

const std::string& host_name() {
    static const std::string name = [] {
        char text[256] = "";
        gethostname(text, sizeof text - 1);
        return std::string(text[0] ? text : "localhost");
    }();
    return name;
}

bool is_this_machine(std::string_view name) {
    const std::string host = lower(name);
    if (host == "localhost" || host == "::1" || host.starts_with("127.")) return true;
    if (host.find_first_not_of("0123456789.") == std::string::npos) return is_own_address(host);
    static const std::string own = lower(host_name());
    const std::string_view short_name = without_domain(host), own_short_name = without_domain(own);
    return host == own || (short_name == own_short_name && (short_name == host || own_short_name == own));
}

bool same_host(std::string_view one, std::string_view other) {
    const std::string a = lower(one), b = lower(other);
    if (a == b) return true;
    const bool one_is_short = without_domain(a) == a || without_domain(b) == b;
    if (one_is_short && without_domain(a) == without_domain(b)) return true;
    return is_this_machine(a) && is_this_machine(b);
}

void HostNames::add(std::string_view name, uint32_t host) {
    const std::string key = lower(name);
    if (!by_name_.try_emplace(key, host).second) return;
    by_short_name_.try_emplace(std::string(without_domain(key)), host);
    if (this_machine_ == kNone && is_this_machine(key)) this_machine_ = host;
}

uint32_t HostNames::find(std::string_view name) const {
    const std::string key = lower(name);
    if (const auto found = by_name_.find(key); found != by_name_.end()) return found->second;
    const std::string short_name(without_domain(key));
    const auto& names = short_name == key ? by_short_name_ : by_name_;
    if (const auto found = names.find(short_name); found != names.end()) return found->second;
    return this_machine_ != kNone && is_this_machine(key) ? this_machine_ : kNone;
}

void unite_slots(uint32_t& slots, uint32_t more) { slots = std::max(slots, 1u) + std::max(more, 1u); }

void add_host(std::vector<HostSlots>& hosts, HostSlots host) { HostList(hosts).add(std::move(host)); }

std::string read_hosts(std::string_view list, std::vector<HostSlots>& out) {
    if (list.empty()) return "the list of hosts is empty";
    HostList hosts(out);
    while (true) {
        const size_t comma = list.find(',');
        HostSlots host;
        if (!read_host(list.substr(0, comma), host))
            return printable(list.substr(0, comma)) + " is neither a host nor host:slots";
        hosts.add(std::move(host));
        if (comma == std::string_view::npos) return {};
        list.remove_prefix(comma + 1);
    }
}

std::string read_hostfile(const std::string& path, std::vector<HostSlots>& out) {
    const size_t before = out.size();
    HostList hosts(out);
    const std::string problem = read_lines("hostfile", path, [&](std::string_view line) { return read_line(line, hosts); });
    if (problem.empty() && out.size() == before && before == 0) return "the hostfile '" + path + "' names no host";
    return problem;
}

}  // namespace starling::launch
