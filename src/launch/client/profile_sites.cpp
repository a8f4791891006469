#include "launch/client/profile_sites.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace starling::launch {

namespace {

constexpr size_t kMostOffsets = 100000;  ///< limit of the call sites of a module

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
        take_offsets(line);
    }
}

// Takes the call sites of a line: strings of a module's name, "+0x" and hexadecimal digits.
void ProfileSites::take_offsets(std::string_view line) {
    constexpr std::string_view kPlus = "+0x";
    for (size_t plus = line.find(kPlus); plus != line.npos; plus = line.find(kPlus, plus + 1)) {
        const size_t digits = plus + kPlus.size(), begin = line.rfind('"', plus), end = line.find('"', digits);
        if (begin == line.npos || end == line.npos || end - digits > 16) continue;
        const auto module = modules_.find(line.substr(begin + 1, plus - begin - 1));
        if (module == modules_.end() || module->second.offsets.size() >= kMostOffsets) continue;
        module->second.offsets.emplace(line.substr(digits, end - digits));
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
