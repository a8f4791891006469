// Tests the plugin itself between two machines, without the library: device <plugin> <device> <side: 0 or 1> <directory> <step>... The two
// sides exchange addresses through files in the shared directory. The steps are functions below. Each prints "<step>: right"; a failed
// check prints an error text and exits with 1.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "transport/verbs/device.h"

using namespace starling::verbs;
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

namespace {

constexpr std::chrono::seconds kLimit(240);  // for anything on a busy machine

int side = 0;
std::string directory;
Port* port = nullptr;

[[noreturn, gnu::format(printf, 3, 4)]] void wrong(int line, const char* condition, const char* format, ...) {
    char more[300];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(more, sizeof more, format, arguments);
    va_end(arguments);
    std::printf("side %d, line %d: this is false: %s %s; the port says: %s\n", side, line, condition, more,
                port ? port->problem() : "");
    std::fflush(stdout);
    std::_Exit(1);
}
[[noreturn]] void wrong(int line, const char* condition) { wrong(line, condition, "%s", ""); }

#define CHECK(condition, ...)                                                     \
    do {                                                                          \
        if (!(condition)) wrong(__LINE__, #condition __VA_OPT__(, ) __VA_ARGS__); \
    } while (false)

// Files

void tell(const std::string& name, const void* data, size_t bytes) {
    const std::string path = directory + "/" + name + "." + std::to_string(side);
    std::ofstream(path + "+", std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    std::rename((path + "+").c_str(), path.c_str());
}

std::string read_file(const std::string& path, size_t bytes) {
    const auto end = Clock::now() + kLimit;
    while (access(path.c_str(), F_OK) != 0) {
        CHECK(Clock::now() < end, "the file %s did not appear", path.c_str());
        usleep(2000);
    }
    std::ifstream file(path, std::ios::binary);
    std::string data(bytes, 0);
    file.read(data.data(), static_cast<std::streamsize>(bytes));
    return data;
}

template <class T>
T exchange(const std::string& name, const T& mine) {
    tell(name, &mine, sizeof mine);
    const std::string data = read_file(directory + "/" + name + "." + std::to_string(1 - side), sizeof(T));
    T theirs;
    std::memcpy(&theirs, data.data(), sizeof theirs);
    return theirs;
}

void meet(const std::string& name) { exchange(name, '.'); }
/// Waits until the script that started this program has done the named action.
void wait_for_script(const std::string& name) { read_file(directory + "/" + name, 0); }

// Events

struct Seen {
    VerbsEvent event;
    Bytes data;
};
std::deque<Seen> unseen;

void poll_once() {
    VerbsEvent events[16];
    const int count = port->poll(events, 16);
    for (int i = 0; i < count; ++i) {
        Seen seen{events[i], {}};
        if (events[i].data) seen.data.assign(events[i].data, events[i].data + events[i].bytes);
        if (events[i].buffer) port->return_buffer(events[i]);
        unseen.push_back(std::move(seen));
    }
}

bool look(VerbsEvent::VerbsEventKind kind, Seen& out) {
    for (size_t i = 0; i < unseen.size(); ++i) {
        if (unseen[i].event.kind != kind) continue;
        out = std::move(unseen[i]);
        unseen.erase(unseen.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
    }
    return false;
}

Seen next(VerbsEvent::VerbsEventKind kind) {
    const auto end = Clock::now() + kLimit;
    Seen seen;
    while (!look(kind, seen)) {
        CHECK(Clock::now() < end, "no event of kind %d was reported in time", static_cast<int>(kind));
        poll_once();
    }
    return seen;
}

void until_taken(const std::function<WorkStatus()>& call) {
    WorkStatus status;
    while ((status = call()) == WorkStatus::busy) poll_once();
    CHECK(status == WorkStatus::done, "the request was not accepted: status %d", static_cast<int>(status));
}

Bytes pattern(size_t bytes, unsigned seed) {
    Bytes data(bytes);
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(seed * 31 + i * 7 + i / 251);
    return data;
}

void send_frame(Queue* queue, const Bytes& data) {
    const iovec part = {const_cast<std::byte*>(data.data()), data.size()};
    until_taken([&] { return queue->send(&part, 1); });
}

Queue* connected(const std::string& name, void* user) {
    Queue* queue = port->make_queue(user);
    CHECK(queue);
    CHECK(queue->connect(exchange(name, queue->address())));
    meet(name + "-ready");
    return queue;
}

// Steps

void datagrams() {
    const VerbsAddress theirs = exchange("datagrams", port->address());
    for (unsigned i = 0; i < 200; ++i) {
        const Bytes data = pattern(i % 3 ? 8 + i : port->datagram_limit() - i, i);
        const iovec parts[2] = {{const_cast<std::byte*>(data.data()), 5},
                                {const_cast<std::byte*>(data.data()) + 5, data.size() - 5}};
        Seen seen;
        if (side == 1) seen = next(VerbsEvent::VerbsEventKind::datagram);
        until_taken([&] { return port->send(theirs, parts, 2); });
        if (side == 0) seen = next(VerbsEvent::VerbsEventKind::datagram);
        CHECK(seen.data == data, "datagram %u of %zu bytes arrived with %zu bytes or wrong contents", i, data.size(),
              seen.data.size());
        CHECK(std::memcmp(seen.event.gid, theirs.gid, 16) == 0 && seen.event.source_queue == theirs.queue,
              "the sender's address is wrong");
    }
    const iovec long_one = {pattern(8, 0).data(), port->datagram_limit() + 1};
    CHECK(port->send(theirs, &long_one, 1) == WorkStatus::too_long);
    meet("datagrams-done");
}

void frames() {
    int user = 0;
    Queue* queue = connected("frames", &user);
    for (unsigned i = 0; i < 100; ++i) {
        const Bytes data = pattern(i == 99 ? port->frame_limit() : i * 40, i);
        if (side == 0) send_frame(queue, data);
        const Seen seen = next(VerbsEvent::VerbsEventKind::frame);
        CHECK(seen.data == data && seen.event.user == &user, "frame %u of %zu bytes is wrong", i, seen.data.size());
        if (side == 1) send_frame(queue, data);
    }
    // Side 0 sends more frames than side 1 has receive buffers, and side 1 does not poll: its device answers "receiver not ready".
    for (unsigned i = 0; side == 0 && i < 1000; ++i) send_frame(queue, pattern(1 + i % 600, i));
    if (side == 1) usleep(200'000);
    for (unsigned i = 0; side == 1 && i < 1000; ++i)
        CHECK(next(VerbsEvent::VerbsEventKind::frame).data == pattern(1 + i % 600, i),
              "frame %u, sent while the receiver did not poll, is wrong", i);
    meet("frames-done");
    queue->close(false);
}

struct Area {
    uint64_t address = 0;
    uint32_t key = 0;
};

uint64_t done() {
    const Seen seen = next(VerbsEvent::VerbsEventKind::done);
    CHECK(seen.event.status == WorkStatus::done, "transfer %llu failed", static_cast<unsigned long long>(seen.event.token));
    return seen.event.token;
}

constexpr size_t kBytes = 1 << 20;
alignas(8) std::byte area[kBytes + 64];

/// Registered memory of this side and of the peer: an offset in one corresponds to the same offset in the other.
struct Mirror {
    Memory registered;
    Area theirs;
    Queue::Transfer at(size_t place, size_t bytes, uint64_t token) const {
        return {.token = token,
                .memory = area + place,
                .local = registered.local,
                .bytes = static_cast<uint32_t>(bytes),
                .address = theirs.address + place,
                .remote = theirs.key};
    }
};

void write_all(Queue* queue, const Mirror& mirror) {
    const Bytes expected = pattern(kBytes, 7);
    std::memcpy(area, expected.data(), kBytes);
    until_taken([&] { return queue->write(mirror.at(0, kBytes, 1)); });
    CHECK(done() == 1);
    // A chain of inline writes without completions, then one whose completion covers them all.
    for (size_t i = 0; i < 5; ++i) {
        uint64_t word = 100 + i;
        Queue::Transfer small = mirror.at(kBytes + 8 * i, 8, 0);
        small.memory = &word;
        small.local = 0;
        small.quiet = small.more = true;
        until_taken([&] { return queue->write(small); });
    }
    until_taken([&] { return queue->write_with_note(mirror.at(0, 0, 2), 4711); });
    CHECK(done() == 2);
}

void check_all() {
    CHECK(next(VerbsEvent::VerbsEventKind::note).event.word == 4711);
    CHECK(std::memcmp(area, pattern(kBytes, 7).data(), kBytes) == 0, "the contents of the long write are wrong");
    uint64_t words[5];
    std::memcpy(words, area + kBytes, sizeof words);
    for (uint64_t i = 0; i < 5; ++i) CHECK(words[i] == 100 + i, "the contents of a short write are wrong");
    std::memcpy(area, pattern(kBytes, 9).data(), kBytes);
}

void read_and_update(Queue* queue, const Mirror& mirror) {
    until_taken([&] { return queue->read(mirror.at(0, kBytes, 3)); });
    CHECK(done() == 3);
    CHECK(std::memcmp(area, pattern(kBytes, 9).data(), kBytes) == 0, "the contents of the read are wrong");
    const auto* word = reinterpret_cast<uint64_t*>(area + kBytes);
    until_taken([&] { return queue->fetch_add(mirror.at(kBytes, 8, 4), 5); });
    CHECK(done() == 4 && *word == 100);
    until_taken([&] { return queue->compare_swap(mirror.at(kBytes, 8, 5), 105, 999); });
    CHECK(done() == 5 && *word == 105);
    until_taken([&] { return queue->compare_swap(mirror.at(kBytes, 8, 6), 105, 1000); });
    CHECK(done() == 6 && *word == 999);
}

void memory() {
    int user = 0;
    Queue* queue = connected("memory", &user);
    Mirror mirror;
    CHECK(port->enroll(area, sizeof area, true, mirror.registered));
    mirror.theirs = exchange("area", Area{reinterpret_cast<uint64_t>(area), mirror.registered.remote});
    if (side == 0)
        write_all(queue, mirror);
    else
        check_all();
    meet("written");
    if (side == 0) read_and_update(queue, mirror);
    meet("read");
    if (side == 1) CHECK(*reinterpret_cast<uint64_t*>(area + kBytes) == 999);
    // A write with an invalid rkey must break the queue pair and report it.
    if (side == 0) {
        Queue::Transfer bad_key = mirror.at(0, kBytes, 7);
        bad_key.remote ^= 0x5500;
        until_taken([&] { return queue->write(bad_key); });
        const Seen seen = next(VerbsEvent::VerbsEventKind::done);
        CHECK(seen.event.token == 7 && seen.event.status == WorkStatus::broken);
        CHECK(next(VerbsEvent::VerbsEventKind::broken).event.user == &user);
        std::printf("said: %s\n", port->problem());
    }
    meet("memory-done");
    queue->close(false);
    port->dismiss(mirror.registered);
}

void last_words() {
    int user = 0;
    Queue* queue = connected("last", &user);
    if (side == 0) {
        for (unsigned i = 0; i < 40; ++i) send_frame(queue, pattern(20, i));
        queue->close(true);
    }
    for (unsigned i = 0; side == 1 && i < 40; ++i)
        CHECK(next(VerbsEvent::VerbsEventKind::frame).data == pattern(20, i), "frame %u, sent before the close, is wrong", i);
    meet("last-heard");
    const auto end = Clock::now() + kLimit;
    while (side == 0 && port->counters().queues > 0) {
        CHECK(Clock::now() < end, "the closed queue still lingers");
        poll_once();
    }
    if (side == 1) queue->close(false);
    meet("last-done");
    unseen.clear();
}

void sleeping() {
    const VerbsAddress theirs = exchange("sleeping", port->address());
    for (unsigned i = 0; i < 20; ++i) {
        const Bytes data = pattern(30, i);
        if (side == 0) {
            usleep(30'000);
            const iovec part = {const_cast<std::byte*>(data.data()), data.size()};
            until_taken([&] { return port->send(theirs, &part, 1); });
        } else {
            Seen seen;
            while (!look(VerbsEvent::VerbsEventKind::datagram, seen)) {
                pollfd waited = {port->wait_fd(), POLLIN, 0};
                if (port->arm()) CHECK(poll(&waited, 1, kLimit / std::chrono::milliseconds(1)) == 1, "no event has arrived");
                poll_once();
            }
            CHECK(seen.data == data);
        }
        meet("slept" + std::to_string(i));
    }
}

void groups() {
    const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 7, 7, 7};
    PortMembership* member = port->join(gid);
    CHECK(member);
    const auto end = Clock::now() + kLimit;
    while (member->state() == PortMembership::MembershipState::joining && Clock::now() < end) poll_once();
    CHECK(member->state() == PortMembership::MembershipState::ready);
    meet("joined");
    for (unsigned i = 0; i < 20; ++i) {
        const Bytes data = pattern(i % 4 > 1 ? 40 : 1500, i);
        const iovec part = {const_cast<std::byte*>(data.data()), data.size()};
        const std::string name = "cast" + std::to_string(i);
        if (i % 2 == static_cast<unsigned>(side)) {
            // Repeat the datagram until the peer has received it, because switches take time to add a member to a group.
            const std::string heard = directory + "/" + name + "." + std::to_string(1 - side);
            do {
                until_taken([&] { return member->send(&part, 1); });
                usleep(20'000);
            } while (access(heard.c_str(), F_OK) != 0 && Clock::now() < end);
        } else {
            while (next(VerbsEvent::VerbsEventKind::datagram).data != data) {}
        }
        meet(name);
    }
    member->leave();
    unseen.clear();
}

// A step in which the script pulls side 0's cable and reconnects it.
void link_down() {
    int user = 0;
    Queue* queue = connected("link", &user);
    meet("pull");
    if (side == 0) {
        next(VerbsEvent::VerbsEventKind::down);
        std::printf("said: %s\n", port->problem());
        tell("is-down", "", 0);
    } else {
        wait_for_script("is-down.0");
    }
    // A frame sent now cannot reach the peer.
    send_frame(queue, pattern(10, 1));
    CHECK(next(VerbsEvent::VerbsEventKind::broken).event.user == &user);
    std::printf("said: %s\n", port->problem());
    queue->close(false);
    tell("put-back", "", 0);
    if (side == 0) next(VerbsEvent::VerbsEventKind::up);
    meet("is-up");
    unseen.clear();
}

// A step in which the script removes side 1's device while both sides communicate.
void removal() {
    int user = 0;
    Queue* queue = connected("removal", &user);
    Memory registered;
    CHECK(port->enroll(area, sizeof area, true, registered));
    meet("remove");
    const auto end = Clock::now() + kLimit;
    Seen seen;
    const VerbsEvent::VerbsEventKind last = side == 0 ? VerbsEvent::VerbsEventKind::broken : VerbsEvent::VerbsEventKind::down;
    while (!look(last, seen)) {
        CHECK(Clock::now() < end, "no event was reported in time");
        const Bytes data = pattern(200, 3);
        const iovec part = {const_cast<std::byte*>(data.data()), data.size()};
        queue->send(&part, 1);
        poll_once();
        while (look(VerbsEvent::VerbsEventKind::frame, seen)) {}
    }
    std::printf("said: %s\n", port->problem());
    queue->close(false);
    port->dismiss(registered);
}

const std::map<std::string, void (*)()> kSteps = {{"datagrams", datagrams},   {"frames", frames},     {"memory", memory},
                                                  {"last_words", last_words}, {"sleeping", sleeping}, {"groups", groups},
                                                  {"link_down", link_down},   {"removal", removal}};

void open_port(const char* library_file, const char* device) {
    void* library = dlopen(library_file, RTLD_NOW);
    CHECK(library, "%s", dlerror());
    const auto* plugin = static_cast<const Plugin*>(dlsym(library, kPluginSymbol));
    CHECK(plugin && plugin->version == kPluginVersion);
    const DeviceOptions options;
    PortFacts facts[8];
    const int found = plugin->list(facts, 8, &options);
    for (int i = 0; i < found; ++i) {
        char gid[INET6_ADDRSTRLEN];
        inet_ntop(AF_INET6, facts[i].gid, gid, sizeof gid);
        std::printf("%s:%d on %s, GID %d %s, mtu %u%s%s\n", facts[i].device, facts[i].port, facts[i].interface,
                    facts[i].gid_index, gid, facts[i].mtu, facts[i].why_not[0] ? ": " : "", facts[i].why_not);
        if (std::string(facts[i].device) != device) continue;
        char problem[400] = {};
        port = plugin->open(&facts[i], &options, problem, sizeof problem);
        CHECK(port, "%s", problem);
    }
    CHECK(port, "there is no device %s", device);
}

}  // namespace

int main(int count, char** words) {
    CHECK(count > 4, "usage: device <plugin> <device> <side> <directory> <step>...");
    side = std::atoi(words[3]);
    directory = words[4];
    open_port(words[1], words[2]);
    for (int i = 5; i < count; ++i) {
        kSteps.at(words[i])();
        std::printf("%s: right\n", words[i]);
        std::fflush(stdout);
    }
    const PortCounters counters = port->counters();
    std::printf("%llu datagrams, %llu frames, %llu transfers; %llu bytes registered\n",
                static_cast<unsigned long long>(counters.datagrams_sent), static_cast<unsigned long long>(counters.frames_sent),
                static_cast<unsigned long long>(counters.transfers),
                static_cast<unsigned long long>(counters.registered_bytes));
    port->close();
}
