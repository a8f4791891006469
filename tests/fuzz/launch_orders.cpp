// Orders between the daemons of one universe, and requests of mpiexec to standing daemons: every message of both.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launch/common/client_protocol.h"
#include "launch/common/order.h"
#include "launch/common/placement_preview.h"
#include "launch/common/plan.h"
#include "launch/common/process_table.h"

using namespace starling;
using namespace starling::launch;

namespace {

// A decoded message must be unambiguous: its encoding decodes again, to an equal message.
template <class Message>
void check(std::string_view bytes) {
    Message message, again;
    if (!decode(bytes, message)) return;
    const std::string first = encode(message);
    if (!decode(first, again) || encode(again) != first) std::abort();
}

void check_all(std::string_view bytes) {
    check<StartOrder>(bytes);
    check<StartReport>(bytes);
    check<StubOrder>(bytes);
    check<FailureReport>(bytes);
    check<RankRuns>(bytes);
    check<GoneReport>(bytes);
    check<HostPorts>(bytes);
    check<PortTable>(bytes);
    check<Submission>(bytes);
    check<SubmissionReply>(bytes);
    check<ClientNotice>(bytes);
    check<PlacementPreview>(bytes);
    check<ProcessTable>(bytes);
}

JobSpec spec() {
    JobSpec s;
    s.programs.emplace_back();
    s.programs[0].argv = {"./a.out", "1"};
    s.programs[0].count = 3;
    s.programs[0].environment = {{"NAME", "value"}};
    return s;
}

job::JobDescription description() {
    job::JobDescription d;
    d.id = 7;
    d.size = d.universe_size = 3;
    d.several_hosts = true;
    d.hosts.resize(2);
    for (uint32_t i = 0; i < 2; ++i) {
        d.hosts[i].id = i + 1;
        d.hosts[i].name[0] = static_cast<char>('a' + i);
        d.hosts[i].addresses = 1;
    }
    d.placements = {{0, 1, 2, 0, 0}, {2, 1, 1, 1, 0}};
    return d;
}

// Returns the encoded message as a seed for the fuzzer. Aborts if it does not decode, because a rejected seed reaches too little code.
template <class Message>
std::string seed(const Message& message) {
    Message out;
    const std::string bytes = encode(message);
    if (!decode(bytes, out)) std::abort();
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    kind_of(bytes);
    check_all(bytes);
    HostOrder order;
    if (decode(bytes, order)) {
        if (encode(order) != bytes) std::abort();
        check_all(order.bytes);
    }
    return 0;
}

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const auto start = [] {
        StartOrder order;
        order.spec = spec();
        order.part.description = description();
        order.part.tree_hosts = {0, 1};
        order.part.environment = {"A=b"};
        return seed(order);
    };
    static const auto submission = [] {
        Submission s;
        s.spec = spec();
        s.directory = "/tmp";
        s.environment = {"A=b", "C=d"};
        s.spec.plan = std::make_shared<const Plan>(
            Plan{"a.out", 3, {4, 8, 1024}, {{"step", 1, 3, {{0, {{1, 9}}}, {2, {}}}}}, "bcast/<=64/3=linear"});
        return seed(s);
    };
    static const auto stub = [] {
        StubOrder order;
        order.description = description();
        order.tree_hosts = {0, 1};
        return seed(order);
    };
    static const auto failure = [] {
        FailureReport report;
        report.rank = 3;
        report.status = 9;
        report.sentence = "rank 3 was killed";
        report.finalized = true;
        report.running = 2;
        return seed(report);
    };
    static const std::string seeds[] = {
        start(),
        seed(HostOrder{.kind = OrderKind::start, .job = 7, .text = "text", .bytes = start()}),
        seed(StartReport{1, 2, 3, "why"}),
        seed(ProcessTable{{"a"}, {"/bin/sh"}, {{0, 0, 17}, {0, 0, 1000}}}),
        stub(),
        failure(),
        seed(HostOrder{.kind = OrderKind::failed, .job = 7, .rank = 3, .bytes = failure()}),
        seed(RankRuns{{0, 1, 2, 0, 0}}),
        submission(),
        seed(SubmissionReply{1, true, "why", 4, 0}),
        seed(SubmissionReply{0, false, "", 4, 0x10001}),
        seed(ClientNotice{1, "a line\n"}),
        seed(PlacementPreview{"", {2, 1}, {"a", "b"}, {0, 1, 0}, {"b"}}),
        seed(GoneReport{true, 3, 1}),
        seed(PortTable{{0, true, {5, 6}}, {1, false, {7}}}),
        seed(HostOrder{.kind = OrderKind::table, .job = 7, .bytes = seed(PortTable{{0, true, {5, 6}}, {1, false, {7}}})}),
        seed(HostOrder{.kind = OrderKind::absent, .job = 7, .rank = 1, .text = "rank 1 has exited"}),
        seed(HostOrder{.kind = OrderKind::host_ports, .job = 7, .round = 1, .bytes = seed(HostPorts{1, true, {8}})}),
        seed(HostOrder{.kind = OrderKind::ports, .job = 7, .rank = 2, .host = 1, .polls = 3, .bytes = std::string(16, '\3')}),
        seed(HostOrder{.kind = OrderKind::rank_request, .job = 7, .rank = 2, .token = 1, .message = 2, .bytes = "request"}),
    };
    count = sizeof seeds / sizeof seeds[0];
    return seeds;
}
