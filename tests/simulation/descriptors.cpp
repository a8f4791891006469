#include "descriptors.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "files.h"

namespace starling::simulation {

namespace {

constexpr int kFirst = 1 << 24;
std::vector<std::unique_ptr<Descriptor>> table;

uint32_t told(const EpollSet::Item& item, const Descriptor& of) {
    if ((item.wanted.events & EPOLLET) && of.edges == item.seen) return 0;
    return of.events() & (item.wanted.events | EPOLLERR | EPOLLHUP);
}

}  // namespace

int open_descriptor(std::unique_ptr<Descriptor> made) {
    table.push_back(std::move(made));
    return kFirst + static_cast<int>(table.size()) - 1;
}

Descriptor* descriptor(int fd) {
    const auto index = static_cast<size_t>(fd - kFirst);
    return fd >= kFirst && index < table.size() ? table[index].get() : nullptr;
}

void close_descriptor(int fd) { table[static_cast<size_t>(fd - kFirst)].reset(); }

void close_all_of(const Process& process) {
    close_files_of(process);
    for (auto& each : table)
        if (each && each->owner == &process) each.reset();
}

const std::vector<std::unique_ptr<Descriptor>>& all_descriptors() { return table; }

uint32_t EpollSet::events() const {
    const auto has_news = [](const Item& item) {
        const Descriptor* const of = descriptor(item.fd);
        return of && told(item, *of) != 0;
    };
    return std::any_of(items.begin(), items.end(), has_news) ? EPOLLIN : 0u;
}

int EpollSet::control(int operation, int fd, const epoll_event* event) {
    const auto known = std::find_if(items.begin(), items.end(), [fd](const Item& item) { return item.fd == fd; });
    if (operation == EPOLL_CTL_ADD) {
        // An epoll set also reports events that were pending before the descriptor was added.
        items.push_back({fd, *event, ~uint64_t{0}});
        return 0;
    }
    if (known == items.end()) {
        errno = ENOENT;
        return -1;
    }
    if (operation == EPOLL_CTL_DEL)
        items.erase(known);
    else
        *known = {fd, *event, ~uint64_t{0}};
    return 0;
}

int EpollSet::take(epoll_event* events, int most) {
    int count = 0;
    bool closed = false;
    for (Item& item : items) {
        const Descriptor* const of = descriptor(item.fd);
        closed |= !of;
        const uint32_t now = count < most && of ? told(item, *of) : 0;
        if (now == 0) continue;
        item.seen = of->edges;
        events[count].events = now;
        events[count++].data = item.wanted.data;
    }
    if (closed) std::erase_if(items, [](const Item& item) { return !descriptor(item.fd); });
    return count;
}

std::string name_of_bell(int fd) {
    char name[8];
    std::snprintf(name, sizeof name, "%05x", static_cast<unsigned>(fd - kFirst));
    return name;
}

BellSocket* find_bell(const std::string& name) {
    return descriptor_as<BellSocket>(kFirst + static_cast<int>(std::strtol(name.c_str(), nullptr, 16)));
}

std::string gather(const iovec* parts, size_t count) {
    std::string bytes;
    for (size_t i = 0; i < count; ++i) bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    return bytes;
}

size_t scatter(std::string_view bytes, const iovec* parts, size_t count) {
    size_t done = 0;
    for (size_t i = 0; i < count && done < bytes.size(); ++i) {
        const size_t part = std::min(parts[i].iov_len, bytes.size() - done);
        std::memcpy(parts[i].iov_base, bytes.data() + done, part);
        done += part;
    }
    return done;
}

}  // namespace starling::simulation
