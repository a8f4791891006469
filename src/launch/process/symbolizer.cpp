#include "launch/process/symbolizer.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/hexadecimal.h"
#include "launch/common/text.h"
#include "launch/process/libdw.h"

namespace starling::launch {

namespace {

/// Finds no separate debug information by the name in a module: whoever wrote the file has chosen the name, perhaps that of a pipe.
/// Symbolizer::open() finds it by the build id.
int find_no_debuginfo(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word, char**) { return -1; }

const Dwfl_Callbacks& offline_callbacks() {
    static const Dwfl_Callbacks callbacks = [] {
        Dwfl_Callbacks all{};
        all.find_debuginfo = find_no_debuginfo;
        all.section_address = libdw()->section_address;
        return all;
    }();
    return callbacks;
}

/// Returns whether libdw may read the file, which blocks on pipes. Without `trusts_path`, a file names the path, and only files of this
/// user and of the system are read.
bool may_read(const std::string& path, bool trusts_path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    return trusts_path || status.st_uid == 0 || status.st_uid == geteuid();
}

/// Returns the place where systems install the debug information of a module; empty without a build id.
std::string separate_debug_file(const std::string& build_id) {
    if (build_id.size() < 4) return {};
    return "/usr/lib/debug/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
}

}  // namespace

struct Symbolizer::OpenModule {
    Dwfl* dwfl = nullptr;
    Dwfl_Module* module = nullptr;
    Dwarf_Addr start = 0;

    OpenModule() = default;
    OpenModule(const OpenModule&) = delete;
    OpenModule& operator=(const OpenModule&) = delete;
    ~OpenModule() {
        if (dwfl) libdw()->end(dwfl);
    }

    /// Opens a file. Returns false if it is no module, or one with another build id.
    bool open(const std::string& path, const std::string& build_id) {
        const Libdw& dw = *libdw();
        dwfl = dw.begin(&offline_callbacks());
        if (!dwfl) return false;
        module = dw.report_offline(dwfl, path.c_str(), path.c_str(), -1);
        if (!module || dw.report_end(dwfl, nullptr, nullptr) != 0) return false;
        Dwarf_Addr bias = 0, at = 0;
        const unsigned char* bytes = nullptr;
        if (!dw.getelf(module, &bias)) return false;
        const int count = dw.build_id(module, &bytes, &at);
        if (hexadecimal(bytes, count > 0 ? static_cast<size_t>(count) : 0) != build_id) return false;
        return dw.module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr) != nullptr;
    }
};

Symbolizer::Symbolizer(bool trusts_path) : trusts_path_(trusts_path) {
    setenv("DEBUGINFOD_URLS", "", 1);  // libdw would ask servers for debug information
}

Symbolizer::~Symbolizer() = default;

Symbolizer::OpenModule* Symbolizer::open(const ModuleFile& file) {
    const auto [at, fresh] = modules_.try_emplace({file.path, file.build_id});
    if (!fresh || !libdw() || (file.build_id.empty() && !trusts_path_)) return at->second.get();
    for (const std::string& path : {separate_debug_file(file.build_id), file.path}) {
        auto opened = std::make_unique<OpenModule>();
        if (!path.starts_with('/') || !may_read(path, trusts_path_) || !opened->open(path, file.build_id)) continue;
        at->second = std::move(opened);
        break;
    }
    return at->second.get();
}

std::string Symbolizer::label(const ModuleFile& file, uint64_t offset) {
    const OpenModule* const opened = offset == 0 ? nullptr : open(file);
    if (!opened) return {};
    // A return address may be the first of the next line, or even of the next function.
    const Dwarf_Addr at = opened->start + offset - 1;
    const CodePlace place = place_at(*libdw(), opened->module, at);
    std::string function = innermost_function(*libdw(), opened->module, at);
    if (function.empty()) function = place.symbol;
    if (!place.source.empty() && !function.empty()) return place.source + " (" + function + ")";
    if (!place.source.empty()) return place.source;
    if (function.empty()) return {};
    return function + " (" + std::string(base_name(file.path)) + ")";
}

}  // namespace starling::launch
