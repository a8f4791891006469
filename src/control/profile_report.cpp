#include "control/profile_report.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <tuple>

#include "base/version.h"
#include "base/wire.h"

namespace starling::control {

namespace {

using PhaseRecord = ProfileReport::PhaseRecord;
using PeerRecord = ProfileReport::PeerRecord;
using Collective = ProfileReport::Collective;
using WaitRecord = ProfileReport::WaitRecord;
using ConnectionRecord = ProfileReport::ConnectionRecord;
using FileRecord = ProfileReport::FileRecord;
using SizeRecord = ProfileReport::SizeRecord;
using ModuleRecord = ProfileReport::ModuleRecord;

// Minimum encoded sizes. Job ids and context ids are random and take eight bytes each; other numbers are mostly small.
constexpr size_t kLeastPeer = 18, kLeastCollective = 36, kLeastWait = 12, kLeastConnection = 11, kLeastPhase = 30,
                 kLeastSize = 3, kLeastModule = 12, kLeastRange = 2, kLeastFile = 15;

// The first number of a report: whether it is the last one, whether the sizes and then the files of each phase follow the phases, and
// whether modules and the use of cores come last.
constexpr uint64_t kLastFlag = 1, kSizesFlag = 2, kModulesFlag = 4, kFilesFlag = 8;

void write(Writer& writer, const PeerRecord& peer) {
    writer.number(peer.job).packed(peer.rank);
    for (size_t i = 0; i < 3; ++i) writer.packed(peer.messages[i]).packed(peer.bytes[i]);
    writer.packed(peer.connection_messages).packed(peer.connection_bytes).packed(peer.has_accesses());
    if (!peer.has_accesses()) return;
    for (size_t i = 0; i < ProfileReport::kAccesses; ++i) writer.packed(peer.accesses[i]).packed(peer.access_bytes[i]);
    writer.packed(peer.packet_accesses).packed(peer.packet_access_bytes);
    writer.packed(peer.connection_accesses).packed(peer.connection_access_bytes);
}

void read(Reader& reader, PeerRecord& out) {
    out.job = reader.number<job::JobId>();
    out.rank = static_cast<uint32_t>(reader.packed(UINT32_MAX));
    for (size_t i = 0; i < 3; ++i) {
        out.messages[i] = reader.packed();
        out.bytes[i] = reader.packed();
    }
    out.connection_messages = reader.packed();
    out.connection_bytes = reader.packed();
    if (reader.packed(1) == 0) return;
    for (size_t i = 0; i < ProfileReport::kAccesses; ++i) {
        out.accesses[i] = reader.packed();
        out.access_bytes[i] = reader.packed();
    }
    out.packet_accesses = reader.packed();
    out.packet_access_bytes = reader.packed();
    out.connection_accesses = reader.packed();
    out.connection_access_bytes = reader.packed();
}

void write(Writer& writer, const Collective& calls) {
    writer.string(calls.site).string(calls.kind).string(calls.algorithm).number(calls.communicator);
    writer.packed(calls.size)
        .number(calls.size_class)
        .packed(calls.tried)
        .packed(calls.calls)
        .packed(calls.bytes)
        .packed(calls.ns);
    writer.number(std::bit_cast<uint64_t>(calls.squares));
}

void read(Reader& reader, Collective& out) {
    out.site = reader.string();
    out.kind = reader.string();
    out.algorithm = reader.string();
    out.communicator = reader.number<uint64_t>();
    out.size = static_cast<uint32_t>(reader.packed(UINT32_MAX));
    out.size_class = reader.number<uint8_t>();
    out.tried = reader.packed(1) != 0;
    out.calls = reader.packed();
    out.bytes = reader.packed();
    out.ns = reader.packed();
    out.squares = std::bit_cast<double>(reader.number<uint64_t>());
}

void write(Writer& writer, const WaitRecord& wait) {
    writer.string(wait.site).string(wait.function);
    for (const uint64_t ns : wait.ns) writer.packed(ns);
}

void read(Reader& reader, WaitRecord& out) {
    out.site = reader.string();
    out.function = reader.string();
    for (uint64_t& ns : out.ns) ns = reader.packed();
}

void write(Writer& writer, const ConnectionRecord& connection) {
    writer.packed(connection.at_ns).number(connection.job).packed(connection.rank).packed(connection.opened);
}

void read(Reader& reader, ConnectionRecord& out) {
    out.at_ns = reader.packed();
    out.job = reader.number<job::JobId>();
    out.rank = static_cast<uint32_t>(reader.packed(UINT32_MAX));
    out.opened = reader.packed(1) != 0;
}

void write(Writer& writer, const FileRecord& file) {
    writer.string(file.file).string(file.site).string(file.function).packed(file.calls).packed(file.bytes).packed(file.ns);
}

void read(Reader& reader, FileRecord& out) {
    out.file = reader.string();
    out.site = reader.string();
    out.function = reader.string();
    out.calls = reader.packed();
    out.bytes = reader.packed();
    out.ns = reader.packed();
}

void write(Writer& writer, const SizeRecord& size) { writer.packed(size.most).packed(size.messages).packed(size.bytes); }

void read(Reader& reader, SizeRecord& out) {
    out.most = reader.packed();
    out.messages = reader.packed();
    out.bytes = reader.packed();
}

void write(Writer& writer, const ModuleRecord& module) {
    writer.string(module.name).string(module.path).string(module.build_id);
}

void read(Reader& reader, ModuleRecord& out) {
    out.name = reader.string();
    out.path = reader.string();
    out.build_id = reader.string();
}

void write(Writer& writer, const PhaseRecord& phase);
void read(Reader& reader, PhaseRecord& out);

template <class T>
void write_all(Writer& writer, const std::vector<T>& all) {
    writer.number(static_cast<uint32_t>(all.size()));
    for (const T& each : all) write(writer, each);
}

template <class T>
void read_all(Reader& reader, std::vector<T>& out, size_t least_bytes) {
    out.resize(reader.count(least_bytes));
    for (T& each : out) read(reader, each);
}

void write(Writer& writer, const PhaseRecord& phase) {
    writer.string(phase.name).number(phase.mark).packed(phase.from).packed(phase.to).packed(phase.began_ns).packed(phase.ns);
    for (const uint64_t ns : phase.waits_ns) writer.packed(ns);
    write_all(writer, phase.peers);
    write_all(writer, phase.collectives);
    write_all(writer, phase.waits);
    write_all(writer, phase.connections);
}

void read(Reader& reader, PhaseRecord& out) {
    out.name = reader.string();
    out.mark = reader.number<uint8_t>();
    out.from = reader.packed();
    out.to = reader.packed();
    out.began_ns = reader.packed();
    out.ns = reader.packed();
    for (uint64_t& ns : out.waits_ns) ns = reader.packed();
    read_all(reader, out.peers, kLeastPeer);
    read_all(reader, out.collectives, kLeastCollective);
    read_all(reader, out.waits, kLeastWait);
    read_all(reader, out.connections, kLeastConnection);
}

void add(PeerRecord& sum, const PeerRecord& other) {
    for (size_t i = 0; i < 3; ++i) {
        sum.messages[i] += other.messages[i];
        sum.bytes[i] += other.bytes[i];
    }
    sum.connection_messages += other.connection_messages;
    sum.connection_bytes += other.connection_bytes;
    for (size_t i = 0; i < ProfileReport::kAccesses; ++i) {
        sum.accesses[i] += other.accesses[i];
        sum.access_bytes[i] += other.access_bytes[i];
    }
    sum.packet_accesses += other.packet_accesses;
    sum.packet_access_bytes += other.packet_access_bytes;
    sum.connection_accesses += other.connection_accesses;
    sum.connection_access_bytes += other.connection_access_bytes;
}

void add(Collective& sum, const Collective& other) {
    sum.calls += other.calls;
    sum.bytes += other.bytes;
    sum.ns += other.ns;
    sum.squares += other.squares;
}

void add(SizeRecord& sum, const SizeRecord& other) {
    sum.messages += other.messages;
    sum.bytes += other.bytes;
}

void add(FileRecord& sum, const FileRecord& other) {
    sum.calls += other.calls;
    sum.bytes += other.bytes;
    sum.ns += other.ns;
}

void add(WaitRecord& sum, const WaitRecord& other) {
    for (size_t i = 0; i < ProfileReport::kCauses; ++i) sum.ns[i] += other.ns[i];
}

auto key_of(const PeerRecord& peer) { return std::tie(peer.job, peer.rank); }

auto key_of(const Collective& calls) {
    return std::tie(calls.site, calls.communicator, calls.kind, calls.size_class, calls.algorithm, calls.size, calls.tried);
}

auto key_of(const SizeRecord& size) { return std::tie(size.most); }

auto key_of(const FileRecord& file) { return std::tie(file.file, file.site, file.function); }

auto key_of(const WaitRecord& wait) { return std::tie(wait.site, wait.function); }

/// Adds the values of equal keys and inserts the other elements. Both vectors are sorted before, and `sum` after.
template <class T>
void merge_sorted(std::vector<T>& sum, const std::vector<T>& later) {
    std::vector<T> merged;
    merged.reserve(std::max(sum.size(), later.size()));
    auto one = sum.begin();
    for (const T& other : later) {
        while (one != sum.end() && key_of(*one) < key_of(other)) merged.push_back(std::move(*one++));
        if (one != sum.end() && key_of(*one) == key_of(other)) {
            merged.push_back(std::move(*one++));
            add(merged.back(), other);
        } else {
            merged.push_back(other);
        }
    }
    std::move(one, sum.end(), std::back_inserter(merged));
    sum = std::move(merged);
}

template <class T>
void sort(std::vector<T>& all) {
    std::sort(all.begin(), all.end(), [](const T& a, const T& b) { return key_of(a) < key_of(b); });
}

/// Adds up elements with equal keys. The vector is sorted before and after.
void fold(std::vector<PeerRecord>& peers) {
    size_t kept = 0;
    for (const PeerRecord& peer : peers) {
        if (kept > 0 && key_of(peers[kept - 1]) == key_of(peer))
            add(peers[kept - 1], peer);
        else
            peers[kept++] = peer;
    }
    peers.resize(kept);
}

}  // namespace

bool ProfileReport::PeerRecord::has_accesses() const { return accesses[0] + accesses[1] + accesses[2] > 0; }

void sort(PhaseRecord& phase) {
    sort(phase.peers);
    fold(phase.peers);
    sort(phase.collectives);
    sort(phase.waits);
    sort(phase.sizes);
    sort(phase.files);
}

void merge(PhaseRecord& sum, const PhaseRecord& later) {
    for (const ConnectionRecord& connection : later.connections) {
        if (sum.connections.size() >= kMostConnections) break;
        sum.connections.push_back(connection);
        const uint64_t between = later.began_ns > sum.began_ns ? later.began_ns - sum.began_ns : 0;
        sum.connections.back().at_ns += between;
    }
    sum.to = later.to;
    sum.ns += later.ns;
    for (size_t i = 0; i < ProfileReport::kCauses; ++i) sum.waits_ns[i] += later.waits_ns[i];
    merge_sorted(sum.peers, later.peers);
    merge_sorted(sum.collectives, later.collectives);
    merge_sorted(sum.waits, later.waits);
    merge_sorted(sum.sizes, later.sizes);
    merge_sorted(sum.files, later.files);
}

size_t footprint(const PhaseRecord& phase) {
    size_t bytes = sizeof phase + phase.name.size() + phase.peers.size() * sizeof(PeerRecord) +
                   phase.collectives.size() * sizeof(Collective) + phase.waits.size() * sizeof(WaitRecord) +
                   phase.connections.size() * sizeof(ConnectionRecord) + phase.sizes.size() * sizeof(SizeRecord) +
                   phase.files.size() * sizeof(FileRecord);
    for (const Collective& calls : phase.collectives) bytes += calls.site.size() + calls.kind.size() + calls.algorithm.size();
    for (const WaitRecord& wait : phase.waits) bytes += wait.site.size() + wait.function.size();
    for (const FileRecord& file : phase.files) bytes += file.file.size() + file.site.size() + file.function.size();
    return bytes;
}

bool knows_sizes(uint32_t wire) { return (wire & 0xffff) >= 1; }

static bool has_sizes(const ProfileReport& report) {
    return report.lists_sizes || std::any_of(report.phases.begin(), report.phases.end(),
                                             [](const PhaseRecord& phase) { return !phase.sizes.empty(); });
}

static bool has_files(const ProfileReport& report) {
    return std::any_of(report.phases.begin(), report.phases.end(),
                       [](const PhaseRecord& phase) { return !phase.files.empty(); });
}

static bool has_modules(const ProfileReport& report) { return !report.modules.empty() || !report.cores.cpus.empty(); }

bool has_additions(const ProfileReport& report) { return has_sizes(report) || has_files(report) || has_modules(report); }

void remove_additions(ProfileReport& report) {
    report.lists_sizes = false;
    for (PhaseRecord& phase : report.phases) {
        phase.sizes.clear();
        phase.files.clear();
    }
    report.modules.clear();
    report.cores = {};
}

std::string encode(const ProfileReport& message) {
    Writer writer;
    const bool sizes = has_sizes(message), files = has_files(message), modules = has_modules(message);
    writer.packed((message.last ? kLastFlag : 0) | (sizes ? kSizesFlag : 0) | (files ? kFilesFlag : 0) |
                  (modules ? kModulesFlag : 0));
    write_all(writer, message.phases);
    if (sizes)
        for (const PhaseRecord& phase : message.phases) write_all(writer, phase.sizes);
    if (files)
        for (const PhaseRecord& phase : message.phases) write_all(writer, phase.files);
    if (!modules) return writer.take();
    write_all(writer, message.modules);
    writer.number(static_cast<uint32_t>(message.cores.cpus.size()));
    for (const auto& [first, last] : message.cores.cpus) writer.packed(first).packed(last);
    writer.packed(message.cores.cpu_ns).packed(message.cores.polled_ns).packed(message.cores.waited_ns);
    return writer.take();
}

bool decode(std::string_view payload, ProfileReport& out) {
    Reader reader(payload);
    const uint64_t additions = knows_sizes(wire_version()) ? kSizesFlag | kFilesFlag | kModulesFlag : 0;
    const uint64_t flags = reader.packed(kLastFlag | additions);
    out.last = flags & kLastFlag;
    out.lists_sizes = flags & kSizesFlag;
    read_all(reader, out.phases, kLeastPhase);
    if (flags & kSizesFlag)
        for (PhaseRecord& phase : out.phases) read_all(reader, phase.sizes, kLeastSize);
    bool has_file = !(flags & kFilesFlag);
    for (PhaseRecord& phase : out.phases) {
        if (flags & kFilesFlag) read_all(reader, phase.files, kLeastFile);
        has_file |= !phase.files.empty();
    }
    if (!has_file) return false;
    out.modules.clear();
    out.cores = {};
    if (!(flags & kModulesFlag)) return reader.done();
    read_all(reader, out.modules, kLeastModule);
    out.cores.cpus.resize(reader.count(kLeastRange));
    for (auto& [first, last] : out.cores.cpus) {
        first = static_cast<uint32_t>(reader.packed(UINT32_MAX));
        last = static_cast<uint32_t>(reader.packed(UINT32_MAX));
    }
    out.cores.cpu_ns = reader.packed();
    out.cores.polled_ns = reader.packed();
    out.cores.waited_ns = reader.packed();
    return reader.done() && (!out.modules.empty() || !out.cores.cpus.empty());
}

}  // namespace starling::control
