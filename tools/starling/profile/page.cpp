#include "page.h"

#include <fmt/format.h>

#include "page_files.h"
#include "pictures.h"
#include "report.h"

namespace starling::analysis {

namespace {

constexpr size_t kPageRows = 12;  ///< rows of each table
constexpr size_t kRankRows = 64;  ///< rows of the table of ranks

/// Encodes JSON for a script element, so that a "</script>" in a name can't end it.
std::string embedded(const Data& json) {
    std::string out;
    for (const char c : json.dump(-1, ' ', false, Data::error_handler_t::replace)) {
        if (c == '<')
            out += "\\u003c";
        else
            out += c;
    }
    return out;
}

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        if (c == '<' || c == '>' || c == '&' || c == '"')
            out += fmt::format("&#{};", static_cast<int>(c));
        else
            out += c;
    }
    return out;
}

}  // namespace

std::string page(const Run& run) {
    if (chart_library().empty())
        throw Refusal(
            "the page needs Chart.js, which was not found when starling was built: install libjs-chart.js, "
            "then build starling again");
    Data all = report(run, {kPageRows, kRankRows, {}, false});
    all["pictures"] = pictures(run);
    std::string out;
    std::string_view rest = page_template();
    const std::pair<std::string_view, std::string> parts[] = {{"{{TITLE}}", escaped(run.application)},
                                                              {"{{STYLE}}", std::string(page_style())},
                                                              {"{{CHART}}", std::string(chart_library())},
                                                              {"{{DATA}}", embedded(all)},
                                                              {"{{HELPERS}}", std::string(page_helpers())}};
    for (const auto& [mark, text] : parts) {
        const size_t at = rest.find(mark);
        out.append(rest.substr(0, at)).append(text);
        rest.remove_prefix(at + mark.size());
    }
    return out.append(rest);
}

}  // namespace starling::analysis
