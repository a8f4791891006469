#include "launch/client/output_options.h"

#include <filesystem>

#include "launch/common/text.h"

namespace starling::launch {

namespace {

/// The qualifiers of a directory or file name.
struct OutputQualifiers {
    bool no_copy = false, no_job = false;
};

std::string absolute_path(std::string_view path) {
    std::error_code ignored;
    return std::filesystem::absolute(std::filesystem::path(path), ignored).string();
}

bool read_qualifier(std::string_view word, OutputQualifiers& out) {
    const std::string name = lowercase(word);
    if (name == "nocopy") out.no_copy = true;
    if (name == "nojobid") out.no_job = true;
    return name == "nocopy" || name == "nojobid";
}

// Removes ":nocopy,nojobid" from the end of a name. A colon that no qualifier follows is part of the name.
std::string_view without_qualifiers(std::string_view name, OutputQualifiers& out) {
    const size_t colon = name.rfind(':');
    if (colon == std::string_view::npos) return name;
    std::string_view words = name.substr(colon + 1);
    while (true) {
        const size_t comma = words.find(',');
        if (!read_qualifier(words.substr(0, comma), out)) return name;
        if (comma == std::string_view::npos) return name.substr(0, colon);
        words.remove_prefix(comma + 1);
    }
}

std::string set_directory(std::string_view name, const OutputQualifiers& qualifiers, OutputStyle& out) {
    if (name.empty()) return "the directory for output has an empty name";
    const std::string directory = as_pattern(absolute_path(name)) + (qualifiers.no_job ? "" : "/%j") + "/rank.%R/";
    out.output_file = directory + "stdout";
    out.error_file = directory + "stderr";
    out.only_files |= qualifiers.no_copy;
    return {};
}

std::string set_file(std::string_view name, const OutputQualifiers& qualifiers, OutputStyle& out) {
    if (name.empty()) return "the file for output has an empty name";
    const std::string file = as_pattern(absolute_path(name)) + ".%R.";
    out.output_file = file + "out";
    out.error_file = file + "err";
    out.only_files |= qualifiers.no_copy;
    return {};
}

void remove_job(std::string& pattern) {
    if (const size_t at = pattern.rfind("/%j/"); at != std::string::npos) pattern.erase(at, 3);
}

std::string read_word(std::string_view text, OutputStyle& out, bool& tags, std::vector<std::string>& notes) {
    OutputQualifiers qualifiers;
    const std::string_view word = without_qualifiers(text, qualifiers);
    const size_t equals = word.find('=');
    const std::string name = lowercase(word.substr(0, equals));
    if (equals != std::string_view::npos && name == "dir") return set_directory(word.substr(equals + 1), qualifiers, out);
    if (equals != std::string_view::npos && name == "file") return set_file(word.substr(equals + 1), qualifiers, out);
    if (name == "tag" || name == "tag-fullname") {
        tags = true;
    } else if (name == "tag-detailed") {
        out.prefix = "[%g,%r][%h] ";
    } else if (name == "timestamp") {
        out.timestamp = true;
    } else if (name == "merge-stderr-to-stdout" || name == "merge") {
        out.merged = true;
    } else if (name == "nocopy") {
        out.only_files = true;
    } else if (name == "nojobid") {
        remove_job(out.output_file);
        remove_job(out.error_file);
    } else if (name == "raw") {
        notes.emplace_back(
            "'--output raw' is ignored: lines stay whole, and unfinished ones are passed on after a short silence");
    } else {
        return "'--output " + std::string(text) +
               "' is not valid; use tag, tag-detailed, timestamp, merge-stderr-to-stdout, dir=DIR or file=FILE, separated by "
               "commas; "
               "srun's --output FILE is -outfile-pattern FILE here";
    }
    return {};
}

}  // namespace

std::string read_output_directory(std::string_view text, OutputStyle& out) {
    OutputQualifiers qualifiers;
    const std::string_view name = without_qualifiers(text, qualifiers);
    return set_directory(name, qualifiers, out);
}

std::string read_output_words(std::string_view text, OutputStyle& out, bool& tags, std::vector<std::string>& notes) {
    while (true) {
        const size_t comma = text.find(',');
        if (std::string problem = read_word(text.substr(0, comma), out, tags, notes); !problem.empty()) return problem;
        if (comma == std::string_view::npos) return {};
        text.remove_prefix(comma + 1);
    }
}

std::string read_file_pattern(const std::string& pattern, std::string OutputStyle::*file, OutputStyle& out) {
    if (pattern.empty()) return "the file for output has an empty name";
    out.only_files = true;
    out.*file = absolute_path(pattern);
    return check_pattern(pattern);
}

}  // namespace starling::launch
