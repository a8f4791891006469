// Files that are embedded in the program: the page template with its style and helpers, and Chart.js from its package.
#pragma once

#include <string_view>

namespace starling::analysis {

std::string_view page_template();
std::string_view page_style();
std::string_view page_helpers();
/// Returns Chart.js; empty if its package was not available at build time.
std::string_view chart_library();

}  // namespace starling::analysis
