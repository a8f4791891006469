#include "launch/process/stack_walk.h"

#include <cstdio>
#include <cstdlib>

#include "base/process.h"
#include "launch/process/libdw.h"

namespace starling::launch {

namespace {

constexpr size_t kMostFrames = 128;

std::string file_name(const char* path) {
    const std::string text(path ? path : "");
    return text.substr(text.rfind('/') + 1);
}

struct StackWalk {
    const Libdw& dw;
    Dwfl* dwfl = nullptr;
    ProcessStacks stacks;

    StackFrame frame_at(Dwarf_Addr pc, bool returns_here) const {
        // A return address may be the first of the next line, or even of the next function.
        const Dwarf_Addr at = returns_here ? pc - 1 : pc;
        StackFrame frame;
        frame.address = pc;
        Dwfl_Module* module = dw.addrmodule(dwfl, at);
        char address[64];
        if (!module) {
            std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(pc));
            frame.function = address;
            return frame;
        }
        Dwarf_Addr start = 0;
        frame.module = file_name(dw.module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr));
        const CodePlace place = place_at(dw, module, at);
        frame.function = place.symbol;
        frame.source = place.source;
        if (!frame.function.empty()) return frame;
        std::snprintf(address, sizeof address, "+0x%llx", static_cast<unsigned long long>(pc - start));
        frame.function = frame.module + address;
        return frame;
    }

    int add_frame(Dwfl_Frame* state) {
        Dwarf_Addr pc = 0;
        bool is_activation = false;
        if (!dw.frame_pc(state, &pc, &is_activation)) return DWARF_CB_ABORT;
        std::vector<StackFrame>& frames = stacks.threads.back().frames;
        frames.push_back(frame_at(pc, !is_activation));
        return frames.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
    }

    int add_thread(Dwfl_Thread* thread) {
        stacks.threads.push_back({dw.thread_tid(thread), {}});
        // A stack that ends early is still worth showing.
        dw.getframes(
            thread, [](Dwfl_Frame* state, void* walk) { return static_cast<StackWalk*>(walk)->add_frame(state); }, this);
        if (!stacks.threads.back().frames.empty()) return DWARF_CB_OK;
        note_problem();
        stacks.threads.pop_back();
        return DWARF_CB_OK;
    }

    void note_problem() {
        const char* reason = dw.errmsg(-1);
        if (stacks.problem.empty()) stacks.problem = reason ? reason : "unknown reason";
    }

    void run(pid_t pid) {
        Dwfl_Callbacks callbacks{};
        callbacks.find_elf = dw.proc_find_elf;
        callbacks.find_debuginfo = dw.find_debuginfo;
        dwfl = dw.begin(&callbacks);
        if (!dwfl || dw.proc_report(dwfl, find_shown_id(pid)) != 0 || dw.report_end(dwfl, nullptr, nullptr) != 0 ||
            dw.proc_attach(dwfl, pid, false) != 0 ||
            dw.getthreads(
                dwfl, [](Dwfl_Thread* thread, void* walk) { return static_cast<StackWalk*>(walk)->add_thread(thread); }, this) <
                0)
            note_problem();
        if (dwfl) dw.end(dwfl);
    }
};

}  // namespace

bool can_walk_stacks() { return libdw() != nullptr; }

ProcessStacks walk_stacks(pid_t pid) {
    if (!libdw()) return {{}, "libdw.so.1 cannot be loaded (install libdw1)"};
    setenv("DEBUGINFOD_URLS", "", 1);
    StackWalk walk{*libdw(), nullptr, {}};
    walk.run(pid);
    if (!walk.stacks.threads.empty()) walk.stacks.problem.clear();
    return std::move(walk.stacks);
}

}  // namespace starling::launch
