// Typed access to JSON values: each function returns the value, or throws a Refusal that names the expected type.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "run.h"

namespace starling::analysis {

using Json = nlohmann::json;

/// Returns a member of an object; throws a Refusal if it is missing.
inline const Json& member(const Json& object, const char* name) {
    const auto found = object.find(name);
    if (found == object.end()) throw Refusal(std::string("\"") + name + "\" is missing");
    return *found;
}

inline const std::string& text_of(const Json& value, const char* what) {
    const auto* text = value.get_ptr<const Json::string_t*>();
    if (!text) throw Refusal(std::string(what) + " is not a string");
    return *text;
}

/// Returns a whole number from `least` to `most`.
inline uint64_t count_of(const Json& value, const char* what, uint64_t least, uint64_t most) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() < least || value.get<uint64_t>() > most)
        throw Refusal(std::string(what) + " is not a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most));
    return value.get<uint64_t>();
}

/// Returns a finite number that is not negative.
inline double amount_of(const Json& value, const char* what) {
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= 0 && number < 1e18)) throw Refusal(std::string(what) + " is not a number of at least 0");
    return number;
}

inline bool flag_of(const Json& value, const char* what) {
    if (!value.is_boolean()) throw Refusal(std::string(what) + " is neither true nor false");
    return value.get<bool>();
}

inline const Json::array_t& list_of(const Json& value, const char* what) {
    const auto* list = value.get_ptr<const Json::array_t*>();
    if (!list) throw Refusal(std::string(what) + " is not a list");
    return *list;
}

/// Returns a list of at least `least` entries.
inline const Json::array_t& row_of(const Json& value, const char* what, size_t least) {
    const Json::array_t& list = list_of(value, what);
    if (list.size() < least)
        throw Refusal(std::string(what) + " has " + std::to_string(list.size()) + " numbers instead of " +
                      std::to_string(least));
    return list;
}

}  // namespace starling::analysis
