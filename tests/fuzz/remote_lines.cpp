// Lines of JSON that other hosts send to `starling top` and `starling why`.
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>

#include "hang/judge.h"
#include "starling/top/remote.h"
#include "starling/top/show.h"
#include "starling/why/remote.h"

using namespace starling;

namespace {

void expect_printable(const std::string& text) {
    for (const char c : text)
        if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == 127) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string line(reinterpret_cast<const char*>(data), size);
    std::vector<top::JobView> views;
    if (top::parse(line, views)) {
        top::sort_ranks(views, {});
        for (const top::ListLine& line_of_list : top::lines(views, {})) expect_printable(line_of_list.text);
        top::json(views, 1);
    }
    std::vector<hang::JobReport> reports;
    if (hang::from_line(line, reports))
        for (const hang::JobReport& job : reports) {
            expect_printable(job.command + job.stacks);
            for (const std::string& text : hang::judge(job.ranks, job.id).findings) expect_printable(text);
            for (const hang::RankReport& rank : job.ranks) expect_printable(hang::sentence(rank, job.id));
        }
    return 0;
}

const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        R"({"interval_s":1.0,"jobs":[{"id":"00000000000000ab","command":"a.out","host":"lab2","launcher":12,"state":"running","size":2,"hosts":1,"age_s":3.5,
            "ranks":[{"rank":0,"host":"lab2","pid":13,"state":"in MPI","waiting":0.5,"asleep":0.1,"core":3,"counters":{"messages_ring":5},"per_second":{"messages_ring":2.5}}]}]})",
        R"({"why":[{"id":"00000000000000ab","command":"a.out","size":2,"stacks":"one\ntwo","ranks":[{"rank":1,"host":"lab2","pid":7,"doing":"computing",
            "cores":0.5,"since_wait":1.0,"since_start":2.0,"garbled":false,"time":500,"account":""}]}]})",
        R"({"why":[{"id":"1","command":"\u001b[31m","size":1,"stacks":"\u009b","ranks":[]}]})",
    };
    count = std::size(seeds);
    return seeds;
}
