#include "file/aggregator_choice.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <tuple>

namespace starling::file {

namespace {

constexpr int kAll = std::numeric_limits<int>::max();

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

/// Returns the text up to the separator, and removes it and the separator from `rest`.
std::string_view split_off(std::string_view& rest, char separator) {
    const std::string_view first = rest.substr(0, rest.find(separator));
    rest.remove_prefix(std::min(rest.size(), first.size() + 1));
    return trim(first);
}

/// Returns the number after a host's name: 1 if it is missing, 0 if it makes no sense.
int read_most(std::string_view text) {
    text = trim(text);
    if (text.empty()) return 1;
    if (text == "*") return kAll;
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number > 0 ? number : 0;
}

/// Returns whether an entry stands for a host: by its name, the name's part before the first dot, or `*`.
bool stands_for(std::string_view entry, const std::string& name) {
    return entry == "*" || entry == name || entry == std::string_view(name).substr(0, name.find('.'));
}

/// The most aggregators of a host, and the place of its entry in the list.
struct Allowed {
    int most = 0;
    size_t entry = 0;
};

Allowed allowed_on(const std::string& name, std::string_view placement) {
    for (size_t i = 0; !placement.empty(); ++i) {
        std::string_view entry = split_off(placement, ',');
        const std::string_view host = split_off(entry, ':');
        if (stands_for(host, name)) return {read_most(entry), i};
    }
    return {};
}

}  // namespace

bool names_hosts(std::string_view placement) {
    while (!placement.empty()) {
        std::string_view entry = split_off(placement, ',');
        if (split_off(entry, ':') != "*") return true;
    }
    return false;
}

std::vector<int> choose_aggregators(const std::vector<int>& host_of, const std::vector<std::string>& names, int wanted,
                                    std::string_view placement) {
    if (placement.empty()) placement = wanted > 0 ? "*:*" : "*:1";
    std::vector<Allowed> allowed;
    for (const std::string& name : names) allowed.push_back(allowed_on(name, placement));
    std::map<int, int> seen;
    std::vector<std::tuple<int, size_t, int>> order;  // place on the host, entry of the list, member
    for (size_t member = 0; member < host_of.size(); ++member) {
        const Allowed& host = allowed[static_cast<size_t>(host_of[member])];
        const int place = seen[host_of[member]]++;
        if (place < host.most) order.emplace_back(place, host.entry, static_cast<int>(member));
    }
    if (order.empty()) return choose_aggregators(host_of, names, wanted, "");
    std::sort(order.begin(), order.end());
    std::vector<int> chosen;
    for (const auto& [place, entry, member] : order) chosen.push_back(member);
    if (wanted > 0 && chosen.size() > static_cast<size_t>(wanted)) chosen.resize(static_cast<size_t>(wanted));
    return chosen;
}

}  // namespace starling::file
