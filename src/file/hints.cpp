#include "file/hints.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <climits>
#include <cstdio>
#include <string_view>

#include "file/system/open_file.h"

namespace starling::file {

namespace {

constexpr int64_t kLeastBuffer = 8192, kMostBuffer = int64_t{1} << 40;

/// Reads a whole number of [least, most]; leaves `value` as it is if the text is something else.
template <class Number>
void read_number(std::string_view text, int base, int64_t least, int64_t most, Number& value) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error == std::errc() && end == text.data() + text.size() && number >= least && number <= most)
        value = static_cast<Number>(number);
}

/// Returns the text in small letters: ROMIO accepts its words in capital letters, too.
std::string in_small_letters(std::string_view text) {
    std::string small(text);
    for (char& letter : small)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');  // whatever the process's locale
    return small;
}

void read_automatic(std::string_view given, Automatic& value) {
    const std::string text = in_small_letters(given);
    if (text == "automatic") value = Automatic::automatic;
    if (text == "enable" || text == "true") value = Automatic::enable;
    if (text == "disable" || text == "false") value = Automatic::disable;
}

const char* automatic_name(Automatic value) {
    return value == Automatic::enable ? "enable" : value == Automatic::disable ? "disable" : "automatic";
}

/// Reads a driver's name as users write it: "nfs", or ROMIO's form "nfs:". An unknown name leaves `driver` as it is.
void read_driver(std::string form, std::string& driver) {
    if (!form.ends_with(':')) form += ':';
    const std::string known = split_prefix(form);
    if (!known.empty() && form.empty()) driver = known;
}

/// Reads one hint. Hints without an entry here have no effect.
void take(std::string_view key, const std::string& value, FileHints& hints) {
    if (key == "cb_buffer_size") {
        read_number(value, 10, 1, kMostBuffer, hints.buffer_bytes);
        hints.buffer_bytes = std::max(hints.buffer_bytes, kLeastBuffer);
    } else if (key == "cb_nodes") {
        read_number(value, 10, 1, INT_MAX, hints.aggregators);
    } else if (key == "cb_config_list") {
        if (!value.empty()) hints.placement = value;
    } else if (key == "collective_buffering") {
        if (in_small_letters(value) == "false") hints.collective_write = hints.collective_read = Automatic::disable;
    } else if (key == "romio_cb_write") {
        read_automatic(value, hints.collective_write);
    } else if (key == "romio_cb_read") {
        read_automatic(value, hints.collective_read);
    } else if (key == "romio_ds_read") {
        if (in_small_letters(value) == "disable") hints.independent_bytes = 0;
    } else if (key == "ind_rd_buffer_size") {
        if (hints.independent_bytes) read_number(value, 10, 1, kMostBuffer, hints.independent_bytes);
    } else if (key == "striping_unit") {
        read_number(value, 10, 1, INT_MAX, hints.striping_unit);
    } else if (key == "striping_factor") {
        read_number(value, 10, 1, INT_MAX, hints.striping_factor);
    } else if (key == "file_perm") {
        read_number(value, 8, 0, 07777, hints.permissions);
    } else if (key == "starling_file_driver") {
        read_driver(value, hints.driver);
    }
}

}  // namespace

FileHints read_hints(const comm::Info& info) {
    FileHints hints;
    // collective_buffering is the general form of romio_cb_*, which therefore have precedence, whatever the order.
    if (const std::string* value = info.find("collective_buffering")) take("collective_buffering", *value, hints);
    for (const comm::Info::InfoEntry& hint : info.entries)
        if (hint.key != "collective_buffering") take(hint.key, hint.value, hints);
    hints.given.entries = info.entries;
    return hints;
}

void describe(const FileHints& hints, const FileLayout& layout, const char* driver, int members, bool visible,
              comm::Info& info) {
    char permissions[16];
    std::snprintf(permissions, sizeof permissions, "0%o", static_cast<unsigned>(hints.permissions));
    info.set("file_perm", permissions);
    const bool none = hints.collective_write == Automatic::disable && hints.collective_read == Automatic::disable;
    info.set("collective_buffering", none ? "false" : "true");
    info.set("cb_buffer_size", std::to_string(hints.buffer_bytes));
    info.set("cb_nodes", hints.aggregators ? std::to_string(std::min(hints.aggregators, members)) : "automatic");
    info.set("cb_config_list", hints.placement.empty() ? "*:1" : hints.placement);
    info.set("romio_cb_write", automatic_name(hints.collective_write));
    info.set("romio_cb_read", automatic_name(hints.collective_read));
    info.set("romio_cb_alltoall", "automatic");
    info.set("romio_no_indep_rw", "false");  // every member opens the file
    info.set("romio_ds_write", "disable");   // a write touches no bytes between its pieces
    info.set("romio_ds_read", hints.independent_bytes ? "automatic" : "disable");
    info.set("ind_rd_buffer_size", std::to_string(hints.independent_bytes));
    info.set("ind_wr_buffer_size", "0");  // pieces are written from the program's memory
    info.set("striping_unit", std::to_string(layout.unit));
    info.set("striping_factor", std::to_string(layout.units));
    info.set("romio_visibility_immediate", visible ? "true" : "false");
    info.set("starling_file_driver", driver);
}

}  // namespace starling::file
