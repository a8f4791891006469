// Profile files, as `starling profile` reads them: any text is read or rejected with one error text.
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "starling/profile/plan.h"
#include "starling/profile/reader.h"
#include "starling/profile/what_if.h"

using namespace starling::analysis;

namespace {

constexpr const char* kHead = R"({"kind":"profile","version":1,"application":"a","command":["./a"]})"
                              "\n"
                              R"({"kind":"job","job":0,"parent":null,"size":3,"hosts":["a","b"],"places":[[0,0,2],[1,2,1]]})"
                              "\n";

/// Limit on the processes of a profile: a few bytes of input could claim more, which would take long to check.
constexpr uint32_t kMostProcesses = 4096;

}  // namespace

const std::string* fuzz_seeds(size_t& count) {
    static const std::string seeds[] = {
        std::string(kHead) +
            R"({"kind":"phase","job":0,"rank":0,"phase":"p","from":1,"to":4,"mark":"program","began":0.5,"seconds":4e-1,)"
            R"("peers":[[0,1,8,80,1,2000,0,0,3,30],[0,2,1,8,0,0,0,0,1,8]],"collectives":[["a+0x1","w",3,"bcast","<=64","node",4,80,0.1],)"
            R"(["a+0x1","w",3,"bcast","<=64","chain",40,80,0.01,1e-4,true],["a+0x1","w",3,"bcast","<=64","node",40,80,0.1,1e-3,false]],)"
            R"("waiting":[["a+0x1","MPI_Recv",0.1,0,0,1],["?","MPI_Wait",0,0,0.5,0]],)"
            R"("waits":{"late sender":0.1,"other":1},"connections":[[0.1,0,1,"opened"]]})"
            "\n"
            R"({"kind":"phase","job":0,"rank":1,"phase":"p","from":2,"to":3,"began":1,"seconds":1,"peers":[[0,0,1,1,0,0,0,0,0,0]]})"
            "\n"
            R"({"kind":"end","job":0,"rank":0,"how":"ended early"})",
        std::string(kHead) +
            R"({"kind":"job","job":1,"parent":0,"size":2,"hosts":["c"],"places":[[0,0,2]]})"
            "\n"
            R"({"kind":"phase","job":1,"rank":1,"phase":"","from":1,"to":1,"began":0,"seconds":0,"peers":[[0,0,1,8,0,0,0,0,0,0]]})",
    };
    count = std::size(seeds);
    return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        Reader reader;
        reader.begin_file("fuzz");
        while (!text.empty()) {
            const size_t end = std::min(text.find('\n'), text.size());
            reader.take(text.substr(0, end));
            text.remove_prefix(std::min(end + 1, text.size()));
        }
        reader.end_file();
        const Run run = reader.finish();
        // An accepted profile is consistent and usable.
        for (const Span& span : run.spans) {
            for (const Part& part : span.parts)
                if (part.process >= run.processes || part.first + part.count > span.sent.size()) std::abort();
            for (const Sent& sent : span.sent)
                if (sent.to >= run.processes) std::abort();
        }
        if (run.processes > kMostProcesses) return 0;
        const WhatIf curves = what_if(run);
        for (const double share : curves.planned)
            if (!(share >= 0 && share < 1 + 1e-9)) std::abort();
        (void)make_plan(run);
    } catch (const Refusal& refusal) {
        const std::string_view sentence = refusal.what();
        if (sentence.empty() || !sentence.starts_with("fuzz")) std::abort();
    }
    return 0;
}
