#include "job/job_description.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/hash.h"
#include "base/random.h"
#include "base/state.h"
#include "base/wire.h"
#include "job/virtual_host.h"

namespace starling::job {

namespace {

constexpr uint32_t kMostRanks = 1u << 24;
constexpr size_t kHostBytes = 8 + 8 + 4 + 4;  // minimum size of an encoded host
constexpr size_t kPlacementBytes = 5 * 4;

bool hash_file(const char* path, uint64_t& hash) {
    char text[128];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t got = read(fd, text, sizeof text);
    close(fd);
    if (got > 0) hash = hash_on(hash, std::string_view(text, static_cast<size_t>(got)));
    return got > 0;
}

HostId find_out_host() {
    uint64_t hash = kEmptyHash;
    char text[256] = "";
    if (!hash_file("/proc/sys/kernel/random/boot_id", hash)) {
        // If the boot id is hidden, hash other properties, so that not all hosts get the same id.
        hash_file("/etc/machine-id", hash);
        if (gethostname(text, sizeof text - 1) == 0) hash = hash_on(hash, text);
    }
    // Process ids, and with them /proc/<pid>/fd, are valid in one namespace only.
    const ssize_t got = readlink("/proc/self/ns/pid", text, sizeof text);
    if (got > 0) hash = hash_on(hash, std::string_view(text, static_cast<size_t>(got)));
    return hash == 0 ? 1 : hash;
}

}  // namespace

STARLING_STATE static HostId known_host = 0;

HostId this_host() {
    if (known_host == 0) known_host = find_out_host();
    return known_host;
}

void set_host_apart(std::string_view name) { known_host = std::max<HostId>(hash_on(find_out_host(), name), 1); }

NetworkSecret::operator bool() const { return *this != NetworkSecret(); }

void JobDescription::draw_network_secret() { draw_random(network_secret.bytes, sizeof network_secret.bytes); }

void JobDescription::draw() {
    id = draw_random_number();
    draw_random(secret, sizeof secret);
    draw_random(&key, sizeof key);
}

uint32_t JobDescription::ranks_on(uint32_t host) const {
    uint32_t ranks = 0;
    for (const Placement& run : placements)
        if (run.host == host) ranks += run.count;
    return ranks;
}

std::string JobDescription::problem() const {
    if (id == 0) return "it has no id";
    if (size == 0 || size > kMostRanks) return "it has " + std::to_string(size) + " processes";
    if (hosts.empty()) return "it has no hosts";
    std::vector<bool> placed(size), local_taken(size);
    for (const HostEntry& host : hosts)
        if (host.addresses > HostEntry::kMost) return "a host has too many addresses";
    uint64_t count = 0;
    for (const Placement& run : placements) {
        if (run.host >= hosts.size()) return "a process is placed on a host that is not listed";
        if (run.count == 0 || run.stride == 0 || run.local + uint64_t{run.count} > size ||
            run.first + uint64_t{run.stride} * (run.count - 1) >= size)
            return "a run of ranks extends beyond the job's size";
        for (uint32_t i = 0; i < run.count; ++i) {
            const uint32_t rank = run.first + i * run.stride;
            if (placed[rank]) return "rank " + std::to_string(rank) + " is placed twice";
            placed[rank] = true;
        }
        count += run.count;
    }
    if (count != size) return std::to_string(size - count) + " processes have no host";
    // The indices among the ranks of a host must be 0, 1, … without gaps, because a segment has exactly that many cells.
    std::vector<Placement> runs = placements;
    std::sort(runs.begin(), runs.end(),
              [](const Placement& a, const Placement& b) { return a.host != b.host ? a.host < b.host : a.local < b.local; });
    for (size_t i = 0; i < runs.size(); ++i) {
        const bool follows = i > 0 && runs[i].host == runs[i - 1].host;
        if (runs[i].local != (follows ? runs[i - 1].local + runs[i - 1].count : 0))
            return "the local ranks on a host have gaps";
    }
    return {};
}

std::string encode(const JobDescription& description) {
    Writer writer;
    writer.number(description.id).number(description.secret[0]).number(description.secret[1]);
    writer.number(description.key).number(description.size).number(description.universe_size);
    writer.string(description.network_secret
                      ? std::string_view(reinterpret_cast<const char*>(description.network_secret.bytes), sizeof(NetworkSecret))
                      : std::string_view());
    writer.number(static_cast<uint8_t>(description.several_hosts)).number(static_cast<uint8_t>(description.recovers));
    writer.number(static_cast<uint8_t>(description.hosts_open));
    writer.number(static_cast<uint32_t>(description.hosts.size()));
    for (const HostEntry& host : description.hosts) {
        writer.number(host.id)
            .number(host.key)
            .string({host.name, strnlen(host.name, sizeof host.name)})
            .number(host.addresses);
        for (uint32_t i = 0; i < host.addresses; ++i) writer.number(host.ipv4[i]);
    }
    writer.number(static_cast<uint32_t>(description.placements.size()));
    for (const Placement& run : description.placements)
        writer.number(run.first).number(run.stride).number(run.count).number(run.host).number(run.local);
    writer.string(description.command).string(description.blob);
    return writer.take();
}

bool decode(std::string_view bytes, JobDescription& out) {
    Reader reader(bytes);
    out.id = reader.number<uint64_t>();
    for (uint64_t& word : out.secret) word = reader.number<uint64_t>();
    out.key = reader.number<uint64_t>();
    out.size = reader.number<uint32_t>();
    out.universe_size = reader.number<uint32_t>();
    const std::string_view network_secret = reader.string();
    if (!network_secret.empty() && network_secret.size() != sizeof(NetworkSecret)) return false;
    out.network_secret = {};
    if (!network_secret.empty()) std::memcpy(out.network_secret.bytes, network_secret.data(), sizeof out.network_secret);
    out.several_hosts = reader.number<uint8_t>() != 0;
    out.recovers = reader.number<uint8_t>() != 0;
    out.hosts_open = reader.number<uint8_t>() != 0;
    out.hosts.assign(reader.count(kHostBytes), {});
    for (HostEntry& host : out.hosts) {
        host.id = reader.number<uint64_t>();
        host.key = reader.number<uint64_t>();
        const std::string_view name = reader.string();
        name.copy(host.name, sizeof host.name - 1);
        host.addresses = reader.number<uint32_t>();
        if (host.addresses > HostEntry::kMost) return false;
        for (uint32_t i = 0; i < host.addresses; ++i) host.ipv4[i] = reader.number<uint32_t>();
    }
    out.placements.assign(reader.count(kPlacementBytes), {});
    for (Placement& run : out.placements) {
        run.first = reader.number<uint32_t>();
        run.stride = reader.number<uint32_t>();
        run.count = reader.number<uint32_t>();
        run.host = reader.number<uint32_t>();
        run.local = reader.number<uint32_t>();
    }
    out.command = reader.string();
    out.blob = reader.string();
    return reader.done() && out.problem().empty();
}

std::vector<Placement> fold_placements(const std::vector<uint32_t>& host_of_rank, uint32_t first_rank,
                                       std::vector<uint32_t>& next_local) {
    constexpr uint32_t kNone = ~0u;
    std::vector<Placement> runs;
    std::vector<uint32_t> open(next_local.size(), kNone);  // index of each host's last run
    for (uint32_t i = 0; i < host_of_rank.size(); ++i) {
        const uint32_t host = host_of_rank[i], rank = first_rank + i;
        const uint32_t local = next_local[host]++;
        if (open[host] != kNone) {
            Placement& run = runs[open[host]];
            if (run.count == 1) run.stride = rank - run.first;
            if (rank == run.first + run.count * run.stride) {
                ++run.count;
                continue;
            }
        }
        open[host] = static_cast<uint32_t>(runs.size());
        runs.push_back({rank, 1, 1, host, local});
    }
    return runs;
}

}  // namespace starling::job
