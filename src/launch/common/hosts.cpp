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
    const std::string host = lowercase(name);
    if (host == "localhost" || host == "::1" || host.starts_with("127.")) return true;
    if (host.find_first_not_of("0123456789.") == std::string::npos) return is_own_address(host);
    static const std::string own = lowercase(host_name());
    const std::string_view short_name = without_domain(host), own_short_name = without_domain(own);
    return host == own || (short_name == own_short_name && (short_name == host || own_short_name == own));
}

bool same_host(std::string_view one, std::string_view other) {
    const std::string a = lowercase(one), b = lowercase(other);
    if (a == b) return true;
    const bool one_is_short = without_domain(a) == a || without_domain(b) == b;
    if (one_is_short && without_domain(a) == without_domain(b)) return true;
    return is_this_machine(a) && is_this_machine(b);
}

void HostNames::add(std::string_view name, uint32_t host) {
    const std::string key = lowercase(name);
    if (!by_name_.try_emplace(key, host).second) return;
    by_short_name_.try_emplace(std::string(without_domain(key)), host);
    if (this_machine_ == kNone && is_this_machine(key)) this_machine_ = host;
}

uint32_t HostNames::find(std::string_view name) const {
    const std::string key = lowercase(name);
    if (const auto found = by_name_.find(key); found != by_name_.end()) return found->second;
    const std::string short_name(without_domain(key));
    const auto& names = short_name == key ? by_short_name_ : by_name_;
    if (const auto found = names.find(short_name); found != names.end()) return found->second;
    return this_machine_ != kNone && is_this_machine(key) ? this_machine_ : kNone;
}

}  // namespace starling::launch
