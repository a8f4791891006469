// elfutils' libdw, which finds functions and source lines for addresses. It is loaded on the first use, since most runs of mpiexec need it
// not. The walk of stacks (stack_walk.h) and the lines of a profile's call sites (symbolizer.h) share it.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <string>

namespace starling::launch {

/// The functions of libdw and libdwfl that are used.
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
    decltype(&dwfl_report_offline) report_offline;
    decltype(&dwfl_offline_section_address) section_address;
    decltype(&dwfl_module_build_id) build_id;
    decltype(&dwfl_module_getelf) getelf;
    decltype(&dwfl_module_addrdie) addrdie;
    decltype(&dwarf_getscopes) getscopes;
    decltype(&dwarf_tag) tag;
    decltype(&dwarf_diename) diename;
    decltype(&dwarf_attr_integrate) attr;
    decltype(&dwarf_formstring) formstring;
};

/// Returns the library, loaded at the first call; null if it is not installed. Thread-safe.
const Libdw* libdw();

/// A place in code. Members are empty if they are not known.
struct CodePlace {
    std::string symbol;  ///< function that the symbol table has for the address, demangled
    std::string source;  ///< "heat2d.c:118"
};

/// Returns the place of an address in a module.
CodePlace place_at(const Libdw& dw, Dwfl_Module* module, Dwarf_Addr at);

/// Returns the innermost function around an address, inlined or not, demangled; empty without debug information, which it reads.
std::string innermost_function(const Libdw& dw, Dwfl_Module* module, Dwarf_Addr at);

}  // namespace starling::launch
