#include "site_names.h"

#include <cstdlib>

namespace starling::analysis {

void SiteNames::take(const Json& object) {
    if (object["kind"] == "site") {
        sources_[text_of(member(object, "site"), "\"site\"")] = text_of(member(object, "source"), "\"source\"");
        return;
    }
    const std::string& name = text_of(member(object, "name"), "\"name\"");
    const launch::ModuleFile file{text_of(member(object, "path"), "\"path\""),
                                  text_of(member(object, "build_id"), "\"build_id\"")};
    const auto [at, fresh] = modules_.try_emplace(name, file);
    if (!fresh && at->second.build_id != file.build_id) at->second = {};
}

std::string SiteNames::name_of(const std::string& site) {
    const auto [known, fresh] = sources_.try_emplace(site, site);
    if (!fresh) return known->second;
    const size_t plus = site.rfind("+0x");
    const auto module = modules_.find(site.substr(0, plus));
    if (plus == std::string::npos || module == modules_.end()) return site;
    if (!symbolizer_) symbolizer_ = std::make_unique<launch::Symbolizer>(false);
    const std::string label = symbolizer_->label(module->second, std::strtoull(site.c_str() + plus + 3, nullptr, 16));
    if (!label.empty()) known->second = label;
    return known->second;
}

}  // namespace starling::analysis
