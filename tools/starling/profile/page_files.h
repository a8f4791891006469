// Files that are part of the program: the page, and Chart.js as its package has it.
#pragma once

#include <string_view>

namespace starling::analysis {

std::string_view page_template();
/// Empty if the package was not there when this was built.
std::string_view chart_library();

}  // namespace starling::analysis
