// The choice of aggregators from the hints cb_nodes and cb_config_list, which users write, for members on any hosts. Every result has at
// least one member, names each member once, is no longer than asked for, and takes the first members of each host. It obeys the entries of
// lists without spaces, which a plain reading of them shows.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "file/aggregator_choice.h"

using namespace starling::file;

namespace {

constexpr const char* kNames[] = {"n01", "n02.cluster.example", "n1", "login", "", "*", "n02"};

/// Members on hosts. Hosts are numbered in the order of their first members, as the library does.
struct Members {
    std::vector<int> host_of;
    std::vector<std::string> names;
};

Members read_members(std::string_view bytes) {
    Members members;
    std::vector<int> numbers(16, -1);
    for (const char byte : bytes) {
        int& number = numbers[static_cast<uint8_t>(byte) % numbers.size()];
        if (number < 0) {
            number = static_cast<int>(members.names.size());
            members.names.emplace_back(kNames[static_cast<uint8_t>(byte) % std::size(kNames)]);
        }
        members.host_of.push_back(number);
    }
    return members;
}

/// Returns the most members of a host that a list allows, by a reading of its own; nothing if the list has unusual entries. A host that no
/// entry stands for has none.
std::optional<int> most_on(const std::string& host, const std::string& list) {
    for (size_t at = 0; at < list.size();) {
        const size_t end = std::min(list.find(',', at), list.size());
        const std::string entry = list.substr(at, end - at);
        const size_t colon = entry.find(':');
        const std::string name = entry.substr(0, colon), most = colon == std::string::npos ? "1" : entry.substr(colon + 1);
        const bool plain = most == "*" || (most.size() == 1 && most[0] >= '1' && most[0] <= '9');
        if (!plain || name.find(' ') != std::string::npos) return std::nullopt;
        if (name == "*" || name == host || name == host.substr(0, host.find('.')))
            return most == "*" ? std::numeric_limits<int>::max() : most[0] - '0';
        at = end + 1;
    }
    return 0;
}

void require(bool condition) {
    if (!condition) std::abort();
}

/// Checks that each host has its first members, and as many as the list allows; `limited`: cb_nodes is set.
void check_hosts(const Members& members, const std::vector<int>& chosen, const std::string& list, bool limited) {
    bool any_allowed = false, known = true;
    std::vector<int> here(members.names.size()), taken(here), most(here);
    for (size_t host = 0; host < here.size(); ++host) {
        const std::optional<int> allowed = most_on(members.names[host], list);
        known = known && allowed;
        most[host] = allowed.value_or(0);
        any_allowed = any_allowed || most[host] > 0;
    }
    for (size_t member = 0; member < members.host_of.size(); ++member) {
        const auto host = static_cast<size_t>(members.host_of[member]);
        ++here[host];
        if (std::find(chosen.begin(), chosen.end(), static_cast<int>(member)) != chosen.end())
            require(++taken[host] == here[host]);
    }
    for (size_t host = 0; host < here.size() && known && any_allowed; ++host) {
        require(taken[host] <= most[host]);
        require(limited || taken[host] == std::min(most[host], here[host]));
    }
}

}  // namespace

/// Returns well-formed inputs, which the replay driver mutates: cb_nodes, the number of members, their hosts, the list.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        std::string("\0\7\0\0\1\1\2\2\2*:1", 12),           std::string("\3\7\0\0\1\1\2\2\2n01:2,*:*", 18),
        std::string("\2\5\1\1\0\0\6n02,n01:3,login:*", 24), std::string("\1\1\4", 3),
        std::string("\11\10\0\1\2\3\0\1\2\3n77:4", 15),
    };
    count = std::size(seeds);
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    if (text.size() < 3) return 0;
    const int wanted = static_cast<uint8_t>(text[0]) % 20;
    const size_t members_wanted = static_cast<uint8_t>(text[1]) % 64 + size_t{1};
    text.remove_prefix(2);
    const Members members = read_members(text.substr(0, members_wanted));
    const std::string list(text.substr(std::min(members_wanted, text.size())));
    names_hosts(list);
    const std::vector<int> chosen = choose_aggregators(members.host_of, members.names, wanted, list);
    require(!chosen.empty());
    require(wanted == 0 || chosen.size() <= static_cast<size_t>(wanted));
    std::vector<int> sorted = chosen;
    std::sort(sorted.begin(), sorted.end());
    require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
    require(sorted.front() >= 0 && sorted.back() < static_cast<int>(members.host_of.size()));
    check_hosts(members, chosen, list.empty() ? (wanted ? "*:*" : "*:1") : list, wanted > 0);
    return 0;
}
