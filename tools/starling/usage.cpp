#include "usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "launch/common/nearest_name.h"
#include "launch/common/text.h"

namespace starling {

namespace {

using Names = std::vector<std::string_view>;

// Returns the innermost command that the command line names.
const CLI::App& command_of_line(const CLI::App& app) {
    const CLI::App* command = &app;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
    return *command;
}

// Returns the words before the wrong one, such as "starling profile show".
std::string path_of(const CLI::App& command) {
    return (command.get_parent() ? path_of(*command.get_parent()) + " " : "") + command.get_name();
}

Names commands_of(const CLI::App& command) {
    Names names;
    for (const CLI::App* below : shown_commands(command)) names.push_back(below->get_name());
    return names;
}

// Returns the long names of the command's options, without dashes.
Names options_of(const CLI::App& command) {
    Names names;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back(name);
    return names;
}

// Describes the first word that no option, argument or command of the line takes; empty if there is none.
std::string unknown_word(const CLI::App& app, const CLI::App& command) {
    for (const std::string& word : app.remaining(true)) {
        if (word == "--") continue;
        if (word.size() > 1 && word[0] == '-') {
            const std::string name = word.substr(word.find_first_not_of('-'), word.find('=') - word.find_first_not_of('-'));
            return "unknown option " + launch::printable(word) + launch::did_you_mean(name, options_of(command), "--");
        }
        if (!commands_of(command).empty())
            return "unknown command " + launch::printable(word) + launch::did_you_mean(word, commands_of(command));
        return "unexpected argument " + launch::printable(word);
    }
    return {};
}

// Returns what is between `before` and `after` in the text; empty if they are not in it.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
    const size_t begin = text.find(before);
    if (begin == text.npos) return {};
    text.remove_prefix(begin + before.size());
    return text.substr(0, text.find(after));
}

// Returns the number as a user writes it: CLI11 writes 0.100000.
std::string short_number(std::string_view text) {
    double number = 0;
    return launch::read_number(text, number) ? fmt::format("{:.15g}", number) : std::string(text);
}

// Returns "unused is not one of rank, ..." from CLI11's "unused not in {rank,...}".
std::string not_in_set(std::string_view value, std::string_view set) {
    Names names;
    for (size_t at = 0; at <= set.size();) {
        const size_t end = std::min(set.find(',', at), set.size());
        names.push_back(set.substr(at, end - at));
        at = end + 1;
    }
    return fmt::format("{} is not {}{}", launch::printable(value), launch::listed(names), launch::did_you_mean(value, names));
}

// Rewrites CLI11's text on the value of an option, which begins with the option's name.
std::string wrong_value(const std::string& text) {
    const std::string_view name = std::string_view(text).substr(0, text.find(": "));
    if (const auto most = between(text, " to ", "\n"); !most.empty() && text.find(" not in range ") != text.npos) {
        const std::string_view value = between(text, "Value ", " not in range "),
                               least = between(text, " not in range ", " to ");
        return fmt::format("{}: {} is not a number from {} to {}", name, launch::printable(value), short_number(least),
                           short_number(most));
    }
    if (const auto set = between(text, " not in {", "}"); !set.empty())
        return fmt::format("{}: {}", name, not_in_set(between(text, ": ", " not in {"), set));
    return text;
}

std::string missing_word(const CLI::App& command, const CLI::ParseError& error) {
    if (const Names commands = commands_of(command); !commands.empty())
        return "a command is missing: " + launch::listed(commands);
    const std::string text = error.what();
    return fmt::format("an argument is missing: {}", text.substr(0, text.find(" is required")));
}

std::string description(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error) {
    if (const std::string unknown = unknown_word(app, command); !unknown.empty()) return unknown;
    const std::string text = error.what();
    if (dynamic_cast<const CLI::RequiredError*>(&error)) return missing_word(command, error);
    if (dynamic_cast<const CLI::ValidationError*>(&error)) return wrong_value(text);
    if (const auto words = between(text, "Could not convert: ", "\n"); !words.empty()) {
        const size_t equals = std::min(words.find(" = "), words.size());
        return fmt::format("{}: {} is not a valid value", words.substr(0, equals),
                           launch::printable(words.substr(std::min(equals + 3, words.size()))));
    }
    if (const auto least = between(text, ": At least ", " required "); !least.empty())
        return fmt::format("{}: {} are needed, but only {} given", text.substr(0, text.find(": ")), least,
                           between(text, "received ", "\n"));
    if (const auto number = between(text, ": ", " required "); !number.empty() && text.ends_with(" missing"))
        return fmt::format("{} needs {}", text.substr(0, text.find(": ")), number == "1" ? "a value" : number);
    return text;
}

}  // namespace

std::vector<const CLI::App*> shown_commands(const CLI::App& command) {
    return command.get_subcommands([](const CLI::App* below) { return !below->get_group().empty(); });
}

int end_of_parsing(const CLI::App& app, const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    const CLI::App& command = command_of_line(app);
    const std::string path = path_of(command);
    fmt::print(stderr, "{}: {} ({} --help lists all)\n", path, description(app, command, error), path);
    return kWrongUsage;
}

int end_of_output(int result) {
    const bool lost_before = std::ferror(stdout) != 0;
    if (std::fflush(stdout) == 0 && !lost_before) return result;
    fmt::print(stderr, "starling: the output is incomplete, because writing to standard output failed: {}\n",
               std::strerror(errno));
    return result == 0 ? 1 : result;
}

}  // namespace starling
