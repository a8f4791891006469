#include "launch/hosts.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace starling::launch {

namespace {

constexpr std::string_view kBlank = " \t\r";

std::string other_host(std::string_view host) {
    return "host '" + std::string(host) + "' is not this machine (" + host_name() +
           "), and Starling starts processes on one machine only, so far; leave it out, or name localhost";
}

bool all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "name:8" without the slots; an IPv6 address has more than one colon.
std::string_view without_slots(std::string_view host) {
    const size_t colon = host.find(':');
    if (colon == std::string_view::npos || host.find(':', colon + 1) != std::string_view::npos) return host;
    return all_digits(host.substr(colon + 1)) ? host.substr(0, colon) : host;
}

bool plausible_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
    });
}

// The rest of a hostfile line after the name: "slots=4 max_slots=8" and the like.
bool plausible_settings(std::string_view rest) {
    while (true) {
        const size_t begin = rest.find_first_not_of(kBlank);
        if (begin == std::string_view::npos) return true;
        rest.remove_prefix(begin);
        const std::string_view word = rest.substr(0, rest.find_first_of(kBlank));
        rest.remove_prefix(word.size());
        const size_t equals = word.find('=');
        if (equals == 0 || equals == std::string_view::npos || !all_digits(word.substr(equals + 1)))
            return false;
    }
}

std::string check_line(std::string_view line) {
    line = line.substr(0, line.find('#'));
    const size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return {};
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(kBlank), line.size());
    const std::string_view name = without_slots(line.substr(0, end));
    if (!plausible_name(name) || !plausible_settings(line.substr(end))) {
        return "'" + std::string(line) + "' is not of the form 'host [slots=N]'";
    }
    return is_this_machine(name) ? std::string() : other_host(name);
}

}  // namespace

const std::string& host_name() {
    static const std::string name = [] {
        char text[256] = "";
        gethostname(text, sizeof text - 1);
        return std::string(text[0] ? text : "localhost");
    }();
    return name;
}

bool is_this_machine(std::string_view host) {
    const std::string_view own = host_name();
    const std::string_view own_short = own.substr(0, own.find('.'));
    if (host == "localhost" || host == own || host == own_short || host == "::1" ||
        host.starts_with("127."))
        return true;
    return own == own_short && host.starts_with(own_short) &&
           host.substr(own_short.size()).starts_with(".");
}

std::string check_hosts(std::string_view list) {
    if (list.empty()) return "an empty list of hosts";
    while (true) {
        const size_t comma = list.find(',');
        const std::string_view host = without_slots(list.substr(0, comma));
        if (!is_this_machine(host)) return other_host(host);
        if (comma == std::string_view::npos) return {};
        list.remove_prefix(comma + 1);
    }
}

std::string check_hostfile(const std::string& path) {
    FILE* file = std::fopen(path.c_str(), "re");
    if (!file) return "cannot read the hostfile '" + path + "': " + std::strerror(errno);
    std::string problem;
    char* line = nullptr;
    size_t capacity = 0;
    int number = 0;
    errno = 0;
    while (problem.empty()) {
        ssize_t length = getline(&line, &capacity, file);
        if (length < 0) break;
        ++number;
        while (length > 0 && line[length - 1] == '\n') --length;
        problem = check_line(std::string_view(line, static_cast<size_t>(length)));
    }
    if (problem.empty() && std::ferror(file)) {
        problem = "cannot read the hostfile '" + path + "': " + std::strerror(errno);
    } else if (!problem.empty()) {
        problem = "hostfile '" + path + "', line " + std::to_string(number) + ": " + problem;
    }
    std::free(line);
    std::fclose(file);
    return problem;
}

}  // namespace starling::launch
