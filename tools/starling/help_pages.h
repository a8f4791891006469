// The texts that `starling help` prints. They are generated when Starling is built (tools/manual) and embedded in the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling {

struct HelpPage {
    bool topic;                           ///< whether the page is a topic; false: a page of functions
    std::vector<std::string_view> names;  ///< all names under which the page is found
    std::string_view title;               ///< title of the page, one line
    std::string_view text;
};

/// Returns all pages; they live as long as the process.
const std::vector<HelpPage>& help_pages();

}  // namespace starling
