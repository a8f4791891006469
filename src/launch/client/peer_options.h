// What mpiexec does with the options of other launchers: the rows of peer_options.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

enum class PeerAnswer {
    done,         ///< an option of mpiexec
    translated,   ///< stands for other options of mpiexec
    ignored,      ///< accepted without effect
    counterpart,  ///< refused, with the name of what to use
};

struct PeerOption {
    std::string_view peers, names, sample;
    PeerAnswer answer;
    std::string_view text;
};

/// An option that launchers understand differently.
struct SharedName {
    std::string_view name;
    bool says;  ///< true: mpiexec prints which meaning it took
    std::string_view taken, others;
};

std::span<const PeerOption> peer_options();
std::span<const SharedName> shared_names();

/// Return the row of an option without its dashes, or null.
const PeerOption* find_peer_option(std::string_view name);
const SharedName* find_shared_name(std::string_view name);

/// Returns the launchers in words: "Open MPI 4 and 5, and MPICH".
std::string peers_text(std::string_view peers);

/// Returns the options that a translated row stands for, with the value in its place.
std::vector<std::string> translation_of(const PeerOption& option, const std::string& value);

}  // namespace starling::launch
