#include "launch/client/peer_options.h"

#include <algorithm>

#include "launch/client/option_help.h"
#include "launch/common/text.h"

namespace starling::launch {

namespace {

constexpr PeerOption kPeerOptions[] = {
#define PEER_OPTION(peers, names, sample, answer, text) {peers, names, sample, PeerAnswer::answer, text},
#define SHARED_NAME(name, says, taken, others)
#include "launch/client/peer_options.def"
#undef PEER_OPTION
#undef SHARED_NAME
};

constexpr SharedName kSharedNames[] = {
#define PEER_OPTION(peers, names, sample, answer, text)
#define SHARED_NAME(name, says, taken, others) {name, says, taken, others},
#include "launch/client/peer_options.def"
#undef PEER_OPTION
#undef SHARED_NAME
};

std::string_view title_of_peer(std::string_view peer) {
    if (peer == "ompi4") return "Open MPI 4";
    if (peer == "ompi5") return "Open MPI 5";
    if (peer == "mpich") return "MPICH";
    return peer == "intel" ? "Intel MPI" : "srun";
}

}  // namespace

std::span<const PeerOption> peer_options() { return kPeerOptions; }
std::span<const SharedName> shared_names() { return kSharedNames; }

const PeerOption* find_peer_option(std::string_view name) {
    const auto found = std::find_if(std::begin(kPeerOptions), std::end(kPeerOptions),
                                    [&](const PeerOption& option) { return has_name(option.names, name); });
    return found == std::end(kPeerOptions) ? nullptr : found;
}

const SharedName* find_shared_name(std::string_view name) {
    const auto found = std::find_if(std::begin(kSharedNames), std::end(kSharedNames),
                                    [&](const SharedName& shared) { return shared.name == name; });
    return found == std::end(kSharedNames) ? nullptr : found;
}

std::string peers_text(std::string_view peers) {
    std::vector<std::string_view> titles;
    const bool both = peers.find("ompi4") != std::string_view::npos && peers.find("ompi5") != std::string_view::npos;
    for_each_name(peers, [&](std::string_view peer) {
        if (both && peer == "ompi5") return;
        titles.push_back(both && peer == "ompi4" ? "Open MPI" : title_of_peer(peer));
    });
    std::string text;
    for (size_t i = 0; i < titles.size(); ++i) {
        if (i > 0) text += i + 1 < titles.size() ? ", " : " and ";
        text += titles[i];
    }
    return text;
}

std::vector<std::string> translation_of(const PeerOption& option, const std::string& value) {
    std::vector<std::string> words = words_of(option.text);
    for (std::string& word : words)
        if (const size_t place = word.find('%'); place != std::string::npos) word.replace(place, 1, value);
    return words;
}

}  // namespace starling::launch
