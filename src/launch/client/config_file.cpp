#include "launch/client/config_file.h"

#include <string_view>

#include "launch/common/text.h"

namespace starling::launch {

namespace {

// Splits a line into words. Single quotes keep everything, double quotes and a backslash keep what a shell keeps.
std::string split_words(std::string_view line, std::vector<std::string>& out) {
    bool open = false;  // whether the last word of `out` continues
    char quote = 0;
    const auto add = [&](char c) {
        if (!open) out.emplace_back();
        open = true;
        out.back() += c;
    };
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        const bool escapes = c == '\\' && quote != '\'' && i + 1 < line.size();
        if (escapes && (quote == 0 || line[i + 1] == '"' || line[i + 1] == '\\')) {
            add(line[++i]);
        } else if (quote == 0 && (c == '\'' || c == '"')) {
            quote = c;
            if (!open) out.emplace_back();
            open = true;
        } else if (quote != 0 && c == quote) {
            quote = 0;
        } else if (quote == 0 && kBlank.find(c) != std::string_view::npos) {
            open = false;
        } else {
            add(c);
        }
    }
    return quote == 0 ? std::string() : "has a quotation mark without its partner";
}

}  // namespace

std::string read_config_file(const std::string& path, std::vector<std::string>& out) {
    std::string command;  // lines of the command that has not ended yet
    bool any = false;
    const auto take = [&](std::string_view line) -> std::string {
        const size_t begin = line.find_first_not_of(kBlank);
        if (command.empty() && (begin == std::string_view::npos || line[begin] == '#')) return {};
        const size_t end = line.find_last_not_of(kBlank);
        if (end != std::string_view::npos && line[end] == '\\') {
            command.append(line.substr(0, end)).append(" ");
            return {};
        }
        command.append(line);
        if (any) out.emplace_back(":");
        any = true;
        std::string problem = split_words(command, out);
        command.clear();
        return problem;
    };
    std::string problem = read_lines("configuration file", path, take);
    if (problem.empty() && !command.empty()) problem = "the last line of the configuration file '" + path + "' ends with '\\'";
    if (problem.empty() && !any) problem = "the configuration file '" + path + "' has no command";
    return problem;
}

}  // namespace starling::launch
