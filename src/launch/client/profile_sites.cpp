#include "launch/client/profile_sites.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace starling::launch {

namespace {

constexpr size_t kMostOffsets = 100000;  ///< limit of the call sites of a module

/// Adds the offsets that follow `"name+0x` in a line.
void add_offsets(std::string_view line, const std::string& name, std::set<std::string>& offsets) {
    const std::string begin = '"' + name + "+0x";
    for (size_t at = line.find(begin); at != line.npos; at = line.find(begin, at)) {
        at += begin.size();
        const size_t end = line.find('"', at);
        if (end == line.npos || end - at > 16 || offsets.size() >= kMostOffsets) continue;
        offsets.emplace(line.substr(at, end - at));
    }
}

}  // namespace

void ProfileSites::take(std::string_view lines) {
    while (!lines.empty()) {
        const std::string_view line = lines.substr(0, lines.find('\n'));
        lines.remove_prefix(std::min(line.size() + 1, lines.size()));
        if (line.starts_with(R"({"kind":"module",)")) {
            take_module(line);
            continue;
        }
        if (!line.starts_with(R"({"kind":"phase",)")) continue;
        for (auto& [name, module] : modules_) add_offsets(line, name, module.offsets);
    }
}

void ProfileSites::take_module(std::string_view line) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) return;
    const ModuleFile file{object.value("path", ""), object.value("build_id", "")};
    const auto [at, fresh] = modules_.try_emplace(object.value("name", ""));
    NamedModule& module = at->second;
    if (fresh) module.file = file;
    // Copies of one file on several hosts are equal.
    module.is_ambiguous |= file.build_id.empty() ? file.path != module.file.path : file.build_id != module.file.build_id;
}

std::string ProfileSites::lines() const {
    std::string lines;
    Symbolizer symbolizer(true);
    for (const auto& [name, module] : modules_) {
        if (module.is_ambiguous) continue;
        for (const std::string& offset : module.offsets) {
            const std::string label = symbolizer.label(module.file, std::strtoull(offset.c_str(), nullptr, 16));
            if (label.empty()) continue;
            const nlohmann::ordered_json line{{"kind", "site"}, {"site", name + "+0x" + offset}, {"source", label}};
            lines += line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
        }
    }
    return lines;
}

}  // namespace starling::launch
