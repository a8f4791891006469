#include "launch/process/libdw.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <dwarf.h>

#include <algorithm>
#include <cstdlib>

#include "base/symbol.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

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

/// Returns the name of a function's entry in the debug information; empty if it has none.
std::string function_name(const Libdw& dw, Dwarf_Die& die) {
    Dwarf_Attribute attribute;
    if (dw.attr(&die, DW_AT_linkage_name, &attribute)) {
        if (const char* const name = dw.formstring(&attribute)) return demangled(name);
    }
    const char* const name = dw.diename(&die);
    return name ? name : "";
}

bool load(Libdw& dw) {
    void* const library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    return find_symbol(library, "dwfl_begin", dw.begin) && find_symbol(library, "dwfl_end", dw.end) &&
           find_symbol(library, "dwfl_errmsg", dw.errmsg) && find_symbol(library, "dwfl_report_end", dw.report_end) &&
           find_symbol(library, "dwfl_linux_proc_report", dw.proc_report) &&
           find_symbol(library, "dwfl_linux_proc_attach", dw.proc_attach) &&
           find_symbol(library, "dwfl_linux_proc_find_elf", dw.proc_find_elf) &&
           find_symbol(library, "dwfl_standard_find_debuginfo", dw.find_debuginfo) &&
           find_symbol(library, "dwfl_getthreads", dw.getthreads) && find_symbol(library, "dwfl_thread_tid", dw.thread_tid) &&
           find_symbol(library, "dwfl_thread_getframes", dw.getframes) && find_symbol(library, "dwfl_frame_pc", dw.frame_pc) &&
           find_symbol(library, "dwfl_addrmodule", dw.addrmodule) && find_symbol(library, "dwfl_module_info", dw.module_info) &&
           find_symbol(library, "dwfl_module_addrname", dw.addrname) && find_symbol(library, "dwfl_module_getsrc", dw.getsrc) &&
           find_symbol(library, "dwfl_lineinfo", dw.lineinfo) &&
           find_symbol(library, "dwfl_report_offline", dw.report_offline) &&
           find_symbol(library, "dwfl_offline_section_address", dw.section_address) &&
           find_symbol(library, "dwfl_module_build_id", dw.build_id) && find_symbol(library, "dwfl_module_getelf", dw.getelf) &&
           find_symbol(library, "dwfl_module_addrdie", dw.addrdie) && find_symbol(library, "dwarf_getscopes", dw.getscopes) &&
           find_symbol(library, "dwarf_tag", dw.tag) && find_symbol(library, "dwarf_diename", dw.diename) &&
           find_symbol(library, "dwarf_attr_integrate", dw.attr) && find_symbol(library, "dwarf_formstring", dw.formstring);
}

}  // namespace

const Libdw* libdw() {
    static Libdw dw{};
    static const bool is_loaded = load(dw);
    return is_loaded ? &dw : nullptr;
}

std::string innermost_function(const Libdw& dw, Dwfl_Module* module, Dwarf_Addr at) {
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = dw.addrdie(module, at, &bias);
    if (!unit) return {};
    Dwarf_Die* scopes = nullptr;
    const int count = dw.getscopes(unit, at - bias, &scopes);
    std::string name;
    for (int i = 0; i < count && name.empty(); ++i) {
        const int tag = dw.tag(&scopes[i]);
        if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram) name = function_name(dw, scopes[i]);
    }
    std::free(scopes);
    return name;
}

CodePlace place_at(const Libdw& dw, Dwfl_Module* module, Dwarf_Addr at) {
    CodePlace place;
    if (const char* const symbol = dw.addrname(module, at)) {
        place.symbol = demangled(symbol);
        strip_marks(place.symbol);
    }
    int line = 0;
    Dwfl_Line* const source = dw.getsrc(module, at);
    const char* const file = source ? dw.lineinfo(source, nullptr, &line, nullptr, nullptr, nullptr) : nullptr;
    if (!file || line <= 0) return place;
    place.source = std::string(base_name(file)) + ":" + std::to_string(line);
    return place;
}

}  // namespace starling::launch
