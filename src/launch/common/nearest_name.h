// Suggestions for misspelled names: options, commands and topics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

/// Returns the candidate that is most similar to `name`; empty if none needs few enough edits to be a misspelling. Upper and lower case
/// are the same.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& candidates);

/// Returns "; did you mean '--hosts'?" for the nearest candidate, which `prefix` precedes; empty if there is none.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates, std::string_view prefix = "");

/// Returns "show, plan or diff".
std::string listed(const std::vector<std::string_view>& names);

}  // namespace starling::launch
