#include "launch/common/order.h"

#include <algorithm>

#include "base/version.h"

namespace starling::launch {

namespace {

bool known(uint32_t kind) {
    const bool added = kind == static_cast<uint32_t>(OrderKind::list) || kind == static_cast<uint32_t>(OrderKind::processes);
    if (added && !knows_additions(wire_version())) return false;
    const auto in = [kind](OrderKind first, OrderKind last) {
        return kind >= static_cast<uint32_t>(first) && kind <= static_cast<uint32_t>(last);
    };
    return in(OrderKind::start, OrderKind::list) || in(OrderKind::started, OrderKind::processes) ||
           in(OrderKind::want_ports, OrderKind::abandoned);
}

// The fields of a HostOrder that each kind puts on the wire; kinds that are not listed use none.
struct OrderFields {
    OrderKind kind;
    uint64_t HostOrder::*first;
    uint64_t HostOrder::*second = nullptr;
};

constexpr OrderFields kPlaces[] = {
    {OrderKind::fail, &HostOrder::failed_rank},
    {OrderKind::over, &HostOrder::state},
    {OrderKind::signal, &HostOrder::signal},
    {OrderKind::written, &HostOrder::descriptor, &HostOrder::count},
    {OrderKind::output, &HostOrder::descriptor},
    {OrderKind::rank_request, &HostOrder::token, &HostOrder::message},
    {OrderKind::answer, &HostOrder::token, &HostOrder::message},
    {OrderKind::to_client, &HostOrder::connection, &HostOrder::message},
    {OrderKind::client, &HostOrder::connection, &HostOrder::message},
    {OrderKind::client_closed, &HostOrder::connection},
    {OrderKind::gather_ports, &HostOrder::round},
    {OrderKind::host_ports, &HostOrder::round},
    {OrderKind::ports, &HostOrder::host, &HostOrder::polls},
    {OrderKind::abandoned, &HostOrder::by_job, &HostOrder::by_rank},
};

OrderFields places_of(OrderKind kind) {
    for (const OrderFields& places : kPlaces) {
        if (places.kind == kind) return places;
    }
    return {kind, nullptr};
}

bool read(Reader& reader, uint64_t HostOrder::*place, HostOrder& out) {
    const auto number = reader.number<uint64_t>();
    if (place) out.*place = number;
    return place || number == 0;
}

}  // namespace

bool knows_additions(uint32_t wire) { return (wire & 0xffff) >= 1; }

static void write(Writer& writer, const std::vector<uint32_t>& numbers) {
    writer.number(static_cast<uint32_t>(numbers.size()));
    for (const uint32_t number : numbers) writer.number(number);
}

static void read(Reader& reader, std::vector<uint32_t>& out) {
    out.resize(reader.count(4));
    for (uint32_t& number : out) number = reader.number<uint32_t>();
}

// Flags of a program and of a job. Other releases of the same wire version read jobs without them, and refuse a job that has one: its
// meaning would be lost.
static constexpr uint32_t kUncountedFlag = 1u << 31;  // in the word of Program::forward
static constexpr uint32_t kInputFlag = 8;             // ranks follow

static void write(Writer& writer, const Program& program) {
    write(writer, program.argv);
    writer.number(program.count).string(program.directory).string(program.search_path);
    writer.number(static_cast<uint32_t>(program.environment.size()));
    for (const auto& [name, value] : program.environment) writer.string(name).string(value);
    writer.number(static_cast<uint32_t>(program.forward) | (program.uncounted ? kUncountedFlag : 0)).number(program.appnum);
    write(writer, program.soft);
    writer.number(static_cast<uint32_t>(program.hosts.size()));
    for (const HostSlots& host : program.hosts) writer.string(host.name).number(host.slots);
    writer.number(static_cast<uint32_t>(program.mapping)).number(program.per_host);
    write(writer, program.host_of_process);
}

static bool read(Reader& reader, Program& out) {
    read(reader, out.argv);
    out.count = reader.number<uint32_t>();
    out.directory = reader.string();
    out.search_path = reader.string();
    out.environment.resize(reader.count(8));
    for (auto& [name, value] : out.environment) {
        name = reader.string();
        value = reader.string();
    }
    const auto flags = reader.number<uint32_t>(), forward = flags & ~kUncountedFlag;
    out.uncounted = (flags & kUncountedFlag) != 0;
    out.forward = static_cast<Forward>(forward);
    out.appnum = reader.number<int32_t>();
    read(reader, out.soft);
    out.hosts.resize(reader.count(8));
    for (HostSlots& host : out.hosts) {
        host.name = reader.string();
        host.slots = reader.number<uint32_t>();
    }
    const auto mapping = reader.number<uint32_t>();
    out.mapping = static_cast<Mapping>(mapping);
    out.per_host = reader.number<uint32_t>();
    read(reader, out.host_of_process);
    const bool placed = std::all_of(out.host_of_process.begin(), out.host_of_process.end(),
                                    [&](uint32_t host) { return host < out.hosts.size(); }) &&
                        (out.host_of_process.empty() || out.host_of_process.size() == out.count);
    return reader.ok() && placed && !out.argv.empty() && forward <= static_cast<uint32_t>(Forward::none) &&
           mapping <= static_cast<uint32_t>(Mapping::slot_ranked_by_node);
}

void write(Writer& writer, const std::vector<std::string>& strings) {
    writer.number(static_cast<uint32_t>(strings.size()));
    for (const std::string& text : strings) writer.string(text);
}

void read(Reader& reader, std::vector<std::string>& out) {
    out.resize(reader.count(4));
    for (std::string& text : out) text = reader.string();
}

static bool chooses_input(const JobSpec& spec) { return !spec.input.is_single() || spec.input.ranges[0].first != 0; }

void write(Writer& writer, const JobSpec& spec) {
    writer.number(static_cast<uint32_t>(spec.programs.size()));
    for (const Program& program : spec.programs) write(writer, program);
    writer.number(spec.parent)
        .number(static_cast<uint32_t>(spec.forward_input | spec.recovers << 1 | spec.encrypts << 2) |
                (chooses_input(spec) ? kInputFlag : 0));
    writer.number(spec.universe_size);
    if (!chooses_input(spec)) return;
    writer.number(static_cast<uint32_t>(spec.input.ranges.size()));
    for (const InputRanks::RankRange& range : spec.input.ranges) writer.number(range.first).number(range.last);
}

bool read(Reader& reader, JobSpec& out) {
    constexpr size_t kLeast = 40;  // minimum bytes of an encoded program, which limit the number of programs in a message
    out.programs.resize(reader.count(kLeast));
    for (Program& program : out.programs) {
        if (!read(reader, program)) return false;
    }
    out.parent = reader.number<job::JobId>();
    const auto flags = reader.number<uint32_t>();
    out.forward_input = (flags & 1) != 0;
    out.recovers = (flags & 2) != 0;
    out.encrypts = (flags & 4) != 0;
    out.universe_size = reader.number<uint32_t>();
    out.input = InputRanks::of_rank(0);
    if ((flags & kInputFlag) == 0) return reader.ok() && !out.programs.empty();
    out.input.ranges.resize(reader.count(8));
    for (InputRanks::RankRange& range : out.input.ranges) {
        range.first = reader.number<uint32_t>();
        range.last = reader.number<uint32_t>();
    }
    return reader.ok() && !out.programs.empty();
}

std::string encode(const HostOrder& order) {
    const OrderFields places = places_of(order.kind);
    Writer writer;
    writer.number(static_cast<uint32_t>(order.kind)).number(order.job).number(order.rank);
    writer.number(places.first ? order.*places.first : 0).number(places.second ? order.*places.second : 0);
    writer.string(order.text).string(order.bytes);
    return writer.take();
}

OrderKind kind_of(std::string_view payload) { return static_cast<OrderKind>(Reader(payload).number<uint32_t>()); }

bool decode(std::string_view payload, HostOrder& out) {
    Reader reader(payload);
    const auto kind = reader.number<uint32_t>();
    out.kind = static_cast<OrderKind>(kind);
    out.job = reader.number<job::JobId>();
    out.rank = reader.number<uint32_t>();
    const OrderFields places = places_of(out.kind);
    const bool numbers = read(reader, places.first, out) && read(reader, places.second, out);
    out.text = reader.string();
    out.bytes = reader.string();
    return reader.done() && known(kind) && numbers;
}

std::string encode(const StartOrder& order) {
    Writer writer;
    write(writer, order.spec);
    writer.string(encode(order.part.description));
    write(writer, order.part.tree_hosts);
    write(writer, order.part.environment);
    const JobStyle& style = order.part.style;
    writer.number(order.part.number);
    writer.number(style.bits() | static_cast<uint32_t>(order.part.whole_environment) << JobStyle::kBits |
                  static_cast<uint32_t>(order.part.reads_cannot_run) << (JobStyle::kBits + 1));
    write_unless_default(writer, style.output);
    return writer.take();
}

bool decode(std::string_view bytes, StartOrder& out) {
    Reader reader(bytes);
    if (!read(reader, out.spec) || !decode(reader.string(), out.part.description)) return false;
    read(reader, out.part.tree_hosts);
    read(reader, out.part.environment);
    out.part.number = reader.number<uint32_t>();
    const auto flags = reader.number<uint32_t>();
    out.part.style = JobStyle::of_bits(flags);
    if (!reader.done()) read_style(reader, out.part.style.output);
    out.part.whole_environment = (flags >> JobStyle::kBits & 1) != 0;
    out.part.reads_cannot_run = (flags >> JobStyle::kBits & 2) != 0;
    return reader.done() && out.part.tree_hosts.size() == out.part.description.hosts.size() &&
           out.spec.size() == out.part.description.size;
}

std::string encode(const StartReport& report) {
    Writer writer;
    writer.number(report.error_class).number(report.failed_program).number(report.failed_index);
    writer.string(report.text);
    if (report.cannot_run) writer.number(uint8_t{1});
    return writer.take();
}

bool decode(std::string_view bytes, StartReport& out) {
    Reader reader(bytes);
    out.error_class = reader.number<int32_t>();
    out.failed_program = reader.number<uint32_t>();
    out.failed_index = reader.number<uint32_t>();
    out.text = reader.string();
    out.cannot_run = !reader.done();
    return !out.cannot_run || (reader.number<uint8_t>() == 1 && reader.done());
}

std::string encode(const StubOrder& order) {
    Writer writer;
    writer.string(encode(order.description));
    write(writer, order.tree_hosts);
    writer.number(order.number).number(static_cast<uint32_t>(order.all_arrived));
    return writer.take();
}

bool decode(std::string_view bytes, StubOrder& out) {
    Reader reader(bytes);
    if (!decode(reader.string(), out.description)) return false;
    read(reader, out.tree_hosts);
    out.number = reader.number<uint32_t>();
    out.all_arrived = reader.number<uint32_t>() != 0;
    return reader.done() && out.tree_hosts.size() == out.description.hosts.size();
}

std::string encode(const FailureReport& report) {
    Writer writer;
    writer.number(report.rank).number(report.status).number(report.exit_code);
    writer.number(static_cast<uint8_t>(report.aborted)).string(report.sentence);
    writer.number(static_cast<uint8_t>(report.finalized)).number(report.running);
    return writer.take();
}

bool decode(std::string_view bytes, FailureReport& out) {
    Reader reader(bytes);
    out.rank = reader.number<uint32_t>();
    out.status = reader.number<int32_t>();
    out.exit_code = reader.number<int32_t>();
    out.aborted = reader.number<uint8_t>() != 0;
    out.sentence = reader.string();
    out.finalized = reader.number<uint8_t>() != 0;
    out.running = reader.number<uint32_t>();
    return reader.done();
}

std::string encode(const RankRuns& runs) {
    Writer writer;
    writer.number(static_cast<uint32_t>(runs.size()));
    for (const job::Placement& run : runs) writer.number(run.first).number(run.stride).number(run.count);
    return writer.take();
}

bool decode(std::string_view bytes, RankRuns& out) {
    Reader reader(bytes);
    out.resize(reader.count(12));
    for (job::Placement& run : out) {
        run.first = reader.number<uint32_t>();
        run.stride = reader.number<uint32_t>();
        run.count = reader.number<uint32_t>();
    }
    return reader.done();
}

std::string encode(const GoneReport& report) {
    Writer writer;
    writer.number(static_cast<uint8_t>(report.had_arrived)).number(report.lookups).number(report.tables);
    return writer.take();
}

bool decode(std::string_view bytes, GoneReport& out) {
    Reader reader(bytes);
    const auto arrived = reader.number<uint8_t>();
    out.had_arrived = arrived == 1;
    out.lookups = reader.number<uint32_t>();
    out.tables = reader.number<uint32_t>();
    return reader.done() && arrived <= 1;
}

static void write(Writer& writer, const HostPorts& ports) {
    writer.number(ports.host).number(static_cast<uint8_t>(ports.complete));
    write(writer, ports.words);
}

static bool read(Reader& reader, HostPorts& out) {
    out.host = reader.number<uint32_t>();
    const auto complete = reader.number<uint8_t>();
    out.complete = complete == 1;
    read(reader, out.words);
    return reader.ok() && complete <= 1;
}

std::string encode(const HostPorts& ports) {
    Writer writer;
    write(writer, ports);
    return writer.take();
}

bool decode(std::string_view bytes, HostPorts& out) {
    Reader reader(bytes);
    return read(reader, out) && reader.done();
}

std::string encode(const PortTable& table) {
    Writer writer;
    writer.number(static_cast<uint32_t>(table.size()));
    for (const HostPorts& ports : table) write(writer, ports);
    return writer.take();
}

bool decode(std::string_view bytes, PortTable& out) {
    Reader reader(bytes);
    constexpr size_t kLeast = 9;  // minimum bytes of an encoded HostPorts
    out.resize(reader.count(kLeast));
    for (HostPorts& ports : out) {
        if (!read(reader, ports)) return false;
    }
    return reader.done();
}

}  // namespace starling::launch
