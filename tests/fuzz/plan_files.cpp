// Input of mpiexec --plan, and files in the cache of plans: any text is a plan or is rejected with an error text. An accepted plan can be
// sent to the root and to the ranks, and an accepted run of the cache can be written again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launch/client/cached_run.h"
#include "launch/client/plan_file.h"

using namespace starling;
using namespace starling::launch;

namespace {

void check_cached_run(std::string_view text) {
    CachedRun run, again;
    const std::string wrong = parse_cached_run(text, run);
    if (!wrong.empty()) {
        if (wrong.size() < 5 || wrong.find('\n') != std::string::npos) std::abort();
        return;
    }
    for (const uint32_t host : run.host_of_rank)
        if (host >= run.hosts.size()) std::abort();
    // Only the parts that mpiexec writes come back: a plan by hand may have limits and several phases.
    if (!parse_cached_run(to_text(run), again).empty() || again.host_of_rank != run.host_of_rank || again.key != run.key) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_cached_run(text);
    Plan plan;
    const std::string wrong = parse_plan(text, plan);
    if (!wrong.empty()) {
        // The error text is one line, for users.
        if (wrong.size() < 5 || wrong.find('\n') != std::string::npos) std::abort();
        return 0;
    }
    Writer writer;
    write(writer, plan);
    Reader reader(writer.view());
    Plan again;
    if (!read(reader, again) || !reader.done() || !(again == plan)) std::abort();
    for (uint32_t rank = 0; rank < plan.size && rank < 8; ++rank) {
        control::PlanReply part;
        if (!decode(encode(plan.part_of(rank)), part) || !(part == plan.part_of(rank))) std::abort();
    }
    return 0;
}

/// Returns well-formed inputs, which the replay driver mutates.
const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        R"({"starling_plan":1,"application":"mesh","size":4,"from":["a"],"max_direct":4,"max_connections":8,
            "phases":[{"name":"step","from":1,"to":3,"peers":{"0":[[1,930],[3,12]],"1":[[0,930]]}},
                      {"name":"step","from":4,"to":null,"peers":{}},{"name":"","from":1,"to":1,"peers":{"3":[]}}]})",
        R"({"starling_plan":1,"application":"a","size":2,"eager_limit":16384,"phases":[],"placement":[[0,1],[0,0]]})",
        R"({"starling_plan":1,"application":"a","size":2,"phases":[],"collectives":[
            {"kind":"allreduce","size":"<=64","processes":2,"algorithm":"ring","seconds":[2e-6,1e-6]},
            {"kind":"bcast","size":">256K","processes":2,"algorithm":"chain"}]})",
        R"({"starling_plan":1,"application":"a","size":2,"phases":[{"name":"x","from":1,"to":null,"peers":{"1":[[0,1]]}}]})",
        R"({"starling_plan":1,"application":"a","size":4,"phases":[{"name":"","from":1,"to":null,"peers":{"1":[[0,200]]}}],
            "key":"/a\n-n 4","command":"a -n 1","hosts":["h1","h2"],"host_of_rank":[0,1,0,1],"seconds":[1.5,1.25]})",
        R"({"starling_plan":1,"application":"a","size":2,"phases":[],"key":"","command":"a","hosts":[],"host_of_rank":[],"seconds":[0,0]})",
    };
    count = sizeof seeds / sizeof seeds[0];
    return seeds;
}
