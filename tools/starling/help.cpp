#include "help.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/config.h"
#include "help_pages.h"
#include "launch/client/option_help.h"
#include "launch/common/nearest_name.h"
#include "launch/common/text.h"
#include "usage.h"

namespace starling {

namespace {

using OrderedJson = nlohmann::ordered_json;

using launch::lowercase;

/// The commands of the launcher, which share one page.
constexpr std::string_view kLaunchers[] = {"mpiexec", "mpirun", "oshrun"};

/// Removes the prefix p of the profiling interface and trailing parentheses: "PMPI_Send()" becomes "mpi_send".
std::string plain_name(std::string_view topic) {
    std::string name = lowercase(topic);
    if (name.starts_with("pmpi") || name.starts_with("pshmem_")) name.erase(0, 1);
    if (name.ends_with("()")) name.resize(name.size() - 2);
    return name;
}

const HelpPage* find_page(std::string_view topic) {
    const std::string name = plain_name(topic);
    for (const HelpPage& page : help_pages()) {
        if (std::any_of(page.names.begin(), page.names.end(), [&](std::string_view one) { return lowercase(one) == name; }))
            return &page;
    }
    return nullptr;
}

const CLI::App* find_command(const CLI::App& app, const std::string& topic) {
    const std::string name = topic.starts_with("starling-") ? topic.substr(9) : topic;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == name) return command;
    }
    return nullptr;
}

bool print_variable(std::string_view topic) {
    std::string name(topic);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const Variable* row = find_variable(name.c_str());
    if (row)
        fmt::print("{}\n    {}\n\n`starling info --variables` shows its value here, its range and where it was set.\n",
                   row->name, row->doc);
    return row != nullptr;
}

void print_contents(const CLI::App& app) {
    fmt::print("starling help TOPIC, where TOPIC is one of\n\n");
    for (const HelpPage& page : help_pages())
        if (page.topic) fmt::print("  {:14}{}\n", page.names[0], page.title);
    fmt::print("\na command\n\n  mpiexec, oshrun");
    for (const CLI::App* command : shown_commands(app)) fmt::print(", {}", command->get_name());
    fmt::print("\n\nan MPI or OpenSHMEM function, such as MPI_Send, or a variable, such as STARLING_WAIT\n");
}

/// Returns all names that `starling help` knows: topics, functions, commands and variables.
std::vector<std::string_view> all_names(const CLI::App& app) {
    std::vector<std::string_view> names(std::begin(kLaunchers), std::end(kLaunchers));
    for (const HelpPage& page : help_pages()) names.insert(names.end(), page.names.begin(), page.names.end());
    for (const CLI::App* command : shown_commands(app)) names.push_back(command->get_name());
    size_t count = 0;
    const Variable* rows = variables(count);
    for (const Variable* row = rows; row != rows + count; ++row) names.push_back(row->name);
    return names;
}

/// Returns names similar to an unknown one, the most similar first, each once. Names that contain it follow misspelled ones.
std::vector<std::string_view> similar(const CLI::App& app, std::string_view topic) {
    const std::string wanted = plain_name(topic);
    std::vector<std::pair<size_t, std::string_view>> found;
    for (const std::string_view name : all_names(app)) {
        const size_t most = std::max<size_t>(1, wanted.size() / 4), distance = launch::edit_distance(lowercase(name), wanted);
        if (distance <= most)
            found.emplace_back(distance, name);
        else if (lowercase(name).find(wanted) != std::string::npos)
            found.emplace_back(most + name.size(), name);
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::vector<std::string_view> names;
    for (size_t i = 0; i < std::min<size_t>(found.size(), 6); ++i) names.push_back(found[i].second);
    return names;
}

OrderedJson json_options(const CLI::App& command) {
    OrderedJson rows = OrderedJson::array();
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_group().empty()) continue;
        std::string value = option->get_type_name();
        rows.push_back({{"names", option->get_name(true, true)},
                        {"value", option->get_items_expected_max() == 0 ? "" : value},
                        {"default", option->get_default_str()},
                        {"positional", option->get_positional()},
                        {"doc", option->get_description()}});
    }
    return rows;
}

OrderedJson command_of(const CLI::App& command) {
    OrderedJson row = {{"name", command.get_name()},
                       {"doc", command.get_description()},
                       {"footer", command.get_footer()},
                       {"options", json_options(command)},
                       {"commands", OrderedJson::array()}};
    for (const CLI::App* below : shown_commands(command)) row["commands"].push_back(command_of(*below));
    return row;
}

}  // namespace

int print_help(const CLI::App& app, const std::string& topic) {
    if (topic.empty()) {
        print_contents(app);
        return 0;
    }
    if (std::find(std::begin(kLaunchers), std::end(kLaunchers), topic) != std::end(kLaunchers))
        return std::fputs(launch::usage().c_str(), stdout) < 0;
    if (const HelpPage* page = find_page(topic)) {
        if (page->topic) fmt::print("{}\n\n", page->title);
        return std::fwrite(page->text.data(), 1, page->text.size(), stdout) != page->text.size();
    }
    if (const CLI::App* command = find_command(app, topic)) return std::fputs(command->help().c_str(), stdout) < 0;
    if (print_variable(topic) || print_variable("STARLING_" + topic)) return 0;
    const auto names = similar(app, topic);
    fmt::print(stderr, "starling: no help on {}{}{} (starling help lists all topics)\n", launch::printable(topic),
               names.empty() ? "" : "; did you mean ", names.empty() ? "" : launch::listed(names) + "?");
    return 1;
}

int print_tables(const CLI::App& app) {
    OrderedJson mpiexec = {
        {"synopsis", launch::usage_synopsis()}, {"remarks", launch::usage_remarks()}, {"options", OrderedJson::array()}};
    for (const launch::OptionHelp& option : launch::option_help()) {
        mpiexec["options"].push_back({{"group", launch::title_of(option.group)},
                                      {"names", option.names},
                                      {"values", option.values},
                                      {"doc", option.doc}});
    }
    OrderedJson out = {{"version", STARLING_VERSION},
                       {"mpiexec", mpiexec},
                       {"starling", command_of(app)},
                       {"variables", OrderedJson::array()},
                       {"topics", OrderedJson::array()}};
    size_t count = 0;
    const Variable* rows = variables(count);
    for (const Variable* row = rows; row != rows + count; ++row)
        out["variables"].push_back({{"name", row->name}, {"doc", row->doc}});
    out["functions"] = OrderedJson::array();
    for (const HelpPage& page : help_pages()) {
        if (page.topic)
            out["topics"].push_back({{"name", page.names[0]}, {"title", page.title}, {"text", page.text}});
        else
            out["functions"].push_back(page.names[0]);
    }
    fmt::print("{}\n", out.dump(1));
    return 0;
}

}  // namespace starling
