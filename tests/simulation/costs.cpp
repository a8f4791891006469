#include "costs.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <variant>

namespace starling::simulation {

namespace {

using Json = nlohmann::json;

/// A row of costs.def.
struct Figure {
    const char *section, *key;
    double least;
    std::variant<uint64_t Prices::Figures::*, double Prices::Figures::*> member;
};

constexpr Figure kFigures[] = {
#define NS(section, key, least, doc) {#section, #key, least, &Prices::Figures::section##_##key},
#define COUNT(section, key, least, doc) {#section, #key, least, &Prices::Figures::section##_##key},
#define REAL(section, key, least, doc) {#section, #key, least, &Prices::Figures::section##_##key},
#include "costs.def"
#undef NS
#undef COUNT
#undef REAL
};

/// Sections that may be null.
constexpr const char* kDevices[] = {"ud", "rc", "ring", "rdma"};
constexpr const char *kCache = "cache", *kSwitches = "switches";

/// Exception with the error and its place as one sentence.
struct Wrong {
    std::string sentence;
};

[[noreturn]] void refuse(const std::string& where, const std::string& what) { throw Wrong{where + " " + what}; }

std::string quoted(const std::string& name) { return '"' + name + '"'; }

bool is_section(const std::string& name) {
    return std::any_of(std::begin(kFigures), std::end(kFigures), [&](const Figure& one) { return name == one.section; });
}

bool is_key(const std::string& section, const std::string& key) {
    return std::any_of(std::begin(kFigures), std::end(kFigures),
                       [&](const Figure& one) { return section == one.section && key == one.key; });
}

bool may_be_null(const std::string& section) {
    return section == kCache || section == kSwitches ||
           std::find(std::begin(kDevices), std::end(kDevices), section) != std::end(kDevices);
}

void require_text(const Json& of, const char* name) {
    const auto found = of.find(name);
    if (found == of.end()) refuse("the file", "has no \"" + std::string(name) + "\"");
    if (!found->is_string() || found->get<std::string>().empty()) refuse(quoted(name), "is not a text");
}

void check_names(const Json& all) {
    if (!all.is_object()) refuse("the file", "is not a JSON object");
    require_text(all, "name");
    require_text(all, "about");
    for (const auto& [name, value] : all.items()) {
        if (name == "name" || name == "about") continue;
        if (!is_section(name)) refuse("the file", "has a section " + quoted(name) + ", which is unknown");
        if (value.is_null() && may_be_null(name)) continue;
        if (!value.is_object()) refuse(quoted(name), "is not an object of figures");
        for (const auto& [key, figure] : value.items())
            if (!is_key(name, key)) refuse(quoted(name), "has a figure " + quoted(key) + ", which is unknown");
    }
}

/// Returns the value of a figure {"value": NUMBER, "source": TEXT}.
double value_of(const Json& figure, const Figure& row, const std::string& where) {
    if (!figure.is_object()) refuse(where, "is not an object with \"value\" and \"source\"");
    for (const auto& [key, value] : figure.items())
        if (key != "value" && key != "source") refuse(where, "has " + quoted(key) + " besides \"value\" and \"source\"");
    const auto value = figure.find("value"), source = figure.find("source");
    if (value == figure.end()) refuse(where, "has no \"value\"");
    if (source == figure.end() || !source->is_string() || source->get<std::string>().empty())
        refuse(where, "has no \"source\", a text that says where the figure comes from");
    if (!value->is_number()) refuse(where, "has a value that is not a number");
    const auto number = value->get<double>();
    if (number < row.least || number > 1e15) {
        std::ostringstream text;
        text << "is " << number << ", but the least value is " << row.least << " and the greatest 1e15";
        refuse(where, text.str());
    }
    return number;
}

void read_figure(const Json& section, const Figure& row, Prices::Figures& out) {
    const auto found = section.find(row.key);
    if (found == section.end()) refuse(quoted(row.section), "has no figure " + quoted(row.key));
    const std::string where = quoted(std::string(row.section) + "." + row.key);
    const double number = value_of(*found, row, where);
    if (const auto* const real = std::get_if<double Prices::Figures::*>(&row.member)) {
        out.*(*real) = number;
        return;
    }
    if (number != std::floor(number)) refuse(where, "is not a whole number");
    out.*std::get<uint64_t Prices::Figures::*>(row.member) = static_cast<uint64_t>(number);
}

void read_figures(const Json& all, Prices::Figures& out) {
    for (const Figure& row : kFigures) {
        const auto section = all.find(row.section);
        if (section == all.end())
            refuse("the file", "has no section " + quoted(row.section) + (may_be_null(row.section) ? "; it may be null" : ""));
        if (!section->is_null()) read_figure(*section, row, out);
    }
}

bool has_devices(const Json& all) {
    const auto count =
        std::count_if(std::begin(kDevices), std::end(kDevices), [&](const char* one) { return all.at(one).is_null(); });
    if (count != 0 && count != std::ssize(kDevices))
        refuse("the file",
               "has some of the sections \"ud\", \"rc\", \"ring\" and \"rdma\", but not all: hosts have devices or none");
    return count == 0;
}

}  // namespace

std::string parse_costs(std::string_view text, Prices& out) {
    try {
        const Json all = Json::parse(text);
        check_names(all);
        out = {};
        read_figures(all, out.of);
        out.exact = true;
        out.has_devices = has_devices(all);
        out.has_cache = !all.at(kCache).is_null();
        out.has_switches = !all.at(kSwitches).is_null();
        out.call = out.of.system_system_call;
        out.clock = out.of.processor_clock_read;
        out.yield = out.of.system_yield;
        if (out.of.adapter_loss > 1) refuse("\"adapter.loss\"", "is a chance, so at most 1");
    } catch (const Wrong& wrong) { return wrong.sentence; } catch (const Json::exception& error) {
        return std::string("the file is not JSON: ") + error.what();
    }
    return {};
}

std::string read_costs(const std::string& path, Prices& out) {
    std::ifstream file(path);
    if (!file) return path + ": " + std::strerror(errno);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::string error = parse_costs(text, out);
    return error.empty() ? error : path + ": " + error;
}

uint64_t least_latency(const Prices& of, bool shares_hosts) {
    uint64_t least = std::min(of.of.udp_latency, of.of.tcp_latency);
    if (of.has_devices) least = std::min({least, of.of.ud_latency, of.of.rc_latency});
    return shares_hosts ? std::min(least, std::max<uint64_t>(1, of.of.shared_memory_line)) : least;
}

}  // namespace starling::simulation
