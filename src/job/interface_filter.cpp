#include "job/interface_filter.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "mpi.h"

namespace starling::job {

namespace {

constexpr size_t kLongestEntry = 32;

/// Reads the next entry of a comma-separated list; returns false at the end. Empty and overlong entries are returned empty.
bool next_entry(const char*& text, char (&entry)[kLongestEntry]) {
    if (*text == '\0') return false;
    const size_t length = std::strcspn(text, ",");
    entry[0] = '\0';
    if (length < sizeof entry) {
        std::memcpy(entry, text, length);
        entry[length] = '\0';
    }
    text += length;
    if (*text == ',') ++text;
    return true;
}

/// Parses "10.1.0.0/16" or a single address, into network byte order.
bool read_network(const char* entry, uint32_t& address, uint32_t& mask) {
    char text[kLongestEntry];
    std::strcpy(text, entry);
    long bits = 32;
    if (char* const slash = std::strchr(text, '/')) {
        *slash = '\0';
        char* end = nullptr;
        bits = std::strtol(slash + 1, &end, 10);
        if (end == slash + 1 || *end != '\0' || bits < 0 || bits > 32) return false;
    }
    in_addr read{};
    if (inet_pton(AF_INET, text, &read) != 1) return false;
    address = read.s_addr;
    mask = bits == 0 ? 0 : htonl(~uint32_t{0} << (32 - bits));
    return true;
}

}  // namespace

int InterfaceFilter::parse(const char* text, InterfaceFilter& out) {
    out = {};
    if (!text || *text == '\0') return MPI_SUCCESS;
    out.but_ = *text == '^';
    out.text_ = text + out.but_;
    const char* rest = out.text_;
    char entry[kLongestEntry];
    while (next_entry(rest, entry)) {
        uint32_t address, mask;
        if (std::strchr(entry, '/') ? read_network(entry, address, mask) : *entry != '\0' && std::strlen(entry) < IFNAMSIZ)
            continue;
        return fail(MPI_ERR_ARG,
                    "STARLING_IP_INTERFACES: '%s' has an entry that is neither an interface's name nor a network; "
                    "write for example eth0,10.1.0.0/16",
                    text);
    }
    return MPI_SUCCESS;
}

bool InterfaceFilter::takes(const char* name, uint32_t address, bool loopback) const {
    if (!text_) return !loopback;
    const char* rest = text_;
    char entry[kLongestEntry];
    bool named = false;
    while (next_entry(rest, entry)) {
        uint32_t network, mask;
        named |= std::strcmp(entry, name) == 0 || (read_network(entry, network, mask) && ((address ^ network) & mask) == 0);
    }
    return but_ ? !named && !loopback : named;
}

}  // namespace starling::job
