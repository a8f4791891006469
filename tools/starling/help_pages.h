// The texts that `starling help` prints. They are made when Starling is built (tools/manual) and are part of the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling {

struct HelpPage {
    bool topic;                           ///< or of functions
    std::vector<std::string_view> names;  ///< all under which it is found
    std::string_view title;               ///< one line
    std::string_view text;
};

/// They live as long as the process.
const std::vector<HelpPage>& help_pages();

}  // namespace starling
