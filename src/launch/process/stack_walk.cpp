#include "launch/process/stack_walk.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace starling::launch {

namespace {

constexpr size_t kMostFrames = 128;

/// The functions of libdw that a walk needs.
struct Libdw {
    decltype(&dwfl_begin) begin;
    decltype(&dwfl_end) end;
    decltype(&dwfl_errmsg) errmsg;
    decltype(&dwfl_report_end) report_end;
    decltype(&dwfl_linux_proc_report) proc_report;
    decltype(&dwfl_linux_proc_attach) proc_attach;
    decltype(&dwfl_linux_proc_find_elf) proc_find_elf;
    decltype(&dwfl_standard_find_debuginfo) find_debuginfo;
    decltype(&dwfl_getthreads) getthreads;
    decltype(&dwfl_thread_tid) thread_tid;
    decltype(&dwfl_thread_getframes) getframes;
    decltype(&dwfl_frame_pc) frame_pc;
    decltype(&dwfl_addrmodule) addrmodule;
    decltype(&dwfl_module_info) module_info;
    decltype(&dwfl_module_addrname) addrname;
    decltype(&dwfl_module_getsrc) getsrc;
    decltype(&dwfl_lineinfo) lineinfo;
};

bool load(Libdw& dw) {
    void* library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
        return function != nullptr;
    };
    return find(dw.begin, "dwfl_begin") && find(dw.end, "dwfl_end") && find(dw.errmsg, "dwfl_errmsg") &&
           find(dw.report_end, "dwfl_report_end") && find(dw.proc_report, "dwfl_linux_proc_report") &&
           find(dw.proc_attach, "dwfl_linux_proc_attach") && find(dw.proc_find_elf, "dwfl_linux_proc_find_elf") &&
           find(dw.find_debuginfo, "dwfl_standard_find_debuginfo") && find(dw.getthreads, "dwfl_getthreads") &&
           find(dw.thread_tid, "dwfl_thread_tid") && find(dw.getframes, "dwfl_thread_getframes") &&
           find(dw.frame_pc, "dwfl_frame_pc") && find(dw.addrmodule, "dwfl_addrmodule") &&
           find(dw.module_info, "dwfl_module_info") && find(dw.addrname, "dwfl_module_addrname") &&
           find(dw.getsrc, "dwfl_module_getsrc") && find(dw.lineinfo, "dwfl_lineinfo");
}

std::string file_name(const char* path) {
    const std::string text(path ? path : "");
    return text.substr(text.rfind('/') + 1);
}

/// Removes the symbol's version and the marks of parts that the compiler has split off.
void strip_marks(std::string& function) {
    for (const char* mark : {"@@", ".cold", ".constprop", ".isra", ".part", ".lto_priv", " [clone"})
        function.resize(std::min(function.find(mark), function.size()));
}

std::string demangled(const char* symbol) {
    int status = 0;
    char* name = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
    std::string text(name ? name : symbol);
    std::free(name);
    return text;
}

struct StackWalk {
    Libdw dw{};
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
        if (const char* symbol = dw.addrname(module, at)) {
            frame.function = demangled(symbol);
            strip_marks(frame.function);
        } else {
            std::snprintf(address, sizeof address, "+0x%llx", static_cast<unsigned long long>(pc - start));
            frame.function = frame.module + address;
        }
        int line = 0;
        Dwfl_Line* source = dw.getsrc(module, at);
        const char* file = source ? dw.lineinfo(source, nullptr, &line, nullptr, nullptr, nullptr) : nullptr;
        if (file && line > 0) frame.source = file_name(file) + ":" + std::to_string(line);
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
        if (!dwfl || dw.proc_report(dwfl, pid) != 0 || dw.report_end(dwfl, nullptr, nullptr) != 0 ||
            dw.proc_attach(dwfl, pid, false) != 0 ||
            dw.getthreads(
                dwfl, [](Dwfl_Thread* thread, void* walk) { return static_cast<StackWalk*>(walk)->add_thread(thread); }, this) <
                0)
            note_problem();
        if (dwfl) dw.end(dwfl);
    }
};

}  // namespace

bool can_walk_stacks() {
    Libdw dw{};
    return load(dw);
}

ProcessStacks walk_stacks(pid_t pid) {
    StackWalk walk;
    if (!load(walk.dw)) return {{}, "libdw.so.1 cannot be loaded (install libdw1)"};
    setenv("DEBUGINFOD_URLS", "", 1);
    walk.run(pid);
    if (!walk.stacks.threads.empty()) walk.stacks.problem.clear();
    return std::move(walk.stacks);
}

}  // namespace starling::launch
