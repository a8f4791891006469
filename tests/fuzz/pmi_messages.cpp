// Messages of other process managers, and the records that processes publish through them for each other.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/version.h"
#include "bootstrap/host_join.h"
#include "bootstrap/host_record.h"
#include "bootstrap/pmi_wire.h"
#include "bootstrap/pmix_hosts.h"
#include "bootstrap/process_mapping.h"

using namespace starling::job;
using namespace starling::bootstrap;

namespace {

void check_stream(pmi::PmiVersion version, std::string_view bytes, size_t step) {
    pmi::Decoder decoder;
    decoder.set_version(version);
    pmi::PmiMessage message, again;
    for (size_t at = 0; at < bytes.size(); at += step) {
        decoder.feed(bytes.substr(at, step));
        while (decoder.next(message) == pmi::Decoder::PmiReadResult::message) {
            // The encoding of a decoded message decodes to an equal message.
            pmi::Decoder other;
            other.set_version(version);
            other.feed(encode(version, message));
            if (other.next(again) == pmi::Decoder::PmiReadResult::message && !(again == message)) std::abort();
        }
    }
}

void check_placements(const std::vector<Placement>& runs, uint32_t size, size_t hosts) {
    uint64_t placed = 0;
    for (const Placement& run : runs) {
        placed += run.count;
        if (run.host >= hosts || run.first + uint64_t{run.stride} * (run.count - 1) >= size) std::abort();
    }
    if (placed != size) std::abort();
}

template <class PmiMessage>
void check(std::string_view payload) {
    PmiMessage message;
    if (decode(payload, message) && encode(message) != payload) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
    const size_t step = data[0] == 0 ? 1 : data[0];
    check_stream(pmi::PmiVersion::one, bytes, step);
    check_stream(pmi::PmiVersion::two, bytes, step);
    std::vector<Placement> runs;
    std::vector<std::string> names;
    uint32_t hosts = 0;
    const uint32_t ranks = 1 + data[0] % 64u;
    if (parse_process_mapping(bytes, ranks, runs, hosts)) check_placements(runs, ranks, hosts);
    if (parse_pmix_hosts(bytes, ranks, runs, names)) check_placements(runs, ranks, names.size());
    HostRecord record, again;
    if (decode(bytes, record)) {
        // Compares records, not bytes, because numbers may have leading zeros.
        if (!decode(encode(record), again) || encode(again) != encode(record)) std::abort();
    }
    check<HostJoin>(bytes);
    check<HostWelcome>(bytes);
    return 0;
}

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        "\x07"
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=get_result rc=0 msg=success "
        "value=x\n",
        "\x09"
        "35    cmd=kvs-get-response;value=a;;b;rc=0;",
        "\x04(vector,(0,2,2),(2,1,1))",
        "\x03"
        "a:0,2;b:1,3;",
        "\x01s" + std::to_string(starling::kThisVersion.major) + ",9c41,fedc,7,2,100007f,ffffffff,name",
        std::string(1, '\x02') + encode(HostJoin{1, 2, 3, 1, 4, 5}),
        std::string(1, '\x02') + encode(HostWelcome{"no", {1, 2, 3, 4}}),
    };
    count = sizeof seeds / sizeof seeds[0];
    return seeds;
}
