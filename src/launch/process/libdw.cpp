#include "launch/process/libdw.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <dwarf.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>

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

/// Returns the innermost function around an address, inlined or not; empty without debug information.
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

}  // namespace

bool load(Libdw& dw) {
    void* const library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
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
           find(dw.getsrc, "dwfl_module_getsrc") && find(dw.lineinfo, "dwfl_lineinfo") &&
           find(dw.report_offline, "dwfl_report_offline") && find(dw.section_address, "dwfl_offline_section_address") &&
           find(dw.build_id, "dwfl_module_build_id") && find(dw.getelf, "dwfl_module_getelf") &&
           find(dw.addrdie, "dwfl_module_addrdie") && find(dw.getscopes, "dwarf_getscopes") && find(dw.tag, "dwarf_tag") &&
           find(dw.diename, "dwarf_diename") && find(dw.attr, "dwarf_attr_integrate") &&
           find(dw.formstring, "dwarf_formstring");
}

CodePlace place_at(const Libdw& dw, Dwfl_Module* module, Dwarf_Addr at) {
    CodePlace place;
    if (const char* const symbol = dw.addrname(module, at)) {
        place.symbol = demangled(symbol);
        strip_marks(place.symbol);
    }
    place.function = innermost_function(dw, module, at);
    if (place.function.empty()) place.function = place.symbol;
    int line = 0;
    Dwfl_Line* const source = dw.getsrc(module, at);
    const char* const file = source ? dw.lineinfo(source, nullptr, &line, nullptr, nullptr, nullptr) : nullptr;
    if (!file || line <= 0) return place;
    const std::string path(file);
    place.source = path.substr(path.rfind('/') + 1) + ":" + std::to_string(line);
    return place;
}

}  // namespace starling::launch
