#include "progress/request.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/state.h"
#include "progress/coroutine_queue.h"

namespace starling::progress {

void Request::notify_completion() {
    if (operations) {
        if (operations->completed) return operations->completed(*this);
        if (orphaned) return operations->dispose(*this);
    }
    if (open_in_group && --*open_in_group > 0) return;
    if (waiter) schedule(waiter);
}

namespace {

/// The requests to which the error texts of the last failures belong. Texts that are never reported, such as those of freed requests, are
/// overwritten in time.
constexpr size_t kSentences = 64;
STARLING_STATE const Request* sentence_of[kSentences] = {};
STARLING_STATE char* sentences[kSentences] = {};  ///< texts of the failures, from malloc
STARLING_STATE size_t next_sentence = 0;

/// Returns the index of the request's error text; kSentences if it has none.
size_t find_sentence(const Request& request) {
    return static_cast<size_t>(std::find(sentence_of, sentence_of + kSentences, &request) - sentence_of);
}

}  // namespace

void save_failure(const Request& request) {
    const std::string_view text = failure_text();
    if (text.empty()) return;
    char* const kept = strndup(text.data(), text.size());
    if (!kept) return clear_failure();  // without memory only the error class is reported
    size_t place = find_sentence(request);
    if (place == kSentences) place = next_sentence++ % kSentences;
    std::free(std::exchange(sentences[place], kept));
    sentence_of[place] = &request;
    clear_failure();
}

void recall_failure(const Request& request) {
    clear_failure();
    const size_t place = find_sentence(request);
    if (place == kSentences) return;
    fail(request.outcome.error, "%s", sentences[place]);
    std::free(std::exchange(sentences[place], nullptr));
    sentence_of[place] = nullptr;
}

}  // namespace starling::progress
