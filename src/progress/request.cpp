#include "progress/request.h"

#include <cstdio>
#include <new>
#include <string>

#include "base/error.h"
#include "base/state.h"
#include "progress/ready.h"

namespace starling::progress {

void Request::tell_of_completion() {
    if (operations) {
        if (operations->completed) return operations->completed(*this);
        if (orphaned) return operations->dispose(*this);
    }
    if (open_in_group && --*open_in_group > 0) return;
    if (waiter) schedule(waiter);
}

namespace {

struct Sentence {
    const Request* request = nullptr;
    char text[1024] = "";
};
/// The last failures; those that nobody reports, as of requests that were freed, are overwritten in time.
constexpr size_t kSentences = 64;
STARLING_STATE Sentence* sentences = nullptr;  ///< made at the first failure
STARLING_STATE size_t next_sentence = 0;

Sentence* find_sentence(const Request& request) {
    for (Sentence* sentence = sentences; sentence && sentence < sentences + kSentences; ++sentence)
        if (sentence->request == &request) return sentence;
    return nullptr;
}

}  // namespace

void keep_failure(const Request& request) {
    const std::string_view text = failure_text();
    if (text.empty()) return;
    if (!sentences) sentences = new (std::nothrow) Sentence[kSentences];
    if (!sentences) return clear_failure();  // the error class has to do
    Sentence* place = find_sentence(request);
    if (!place) place = &sentences[next_sentence++ % kSentences];
    place->request = &request;
    std::snprintf(place->text, sizeof place->text, "%.*s", static_cast<int>(text.size()), text.data());
    clear_failure();
}

void recall_failure(const Request& request) {
    clear_failure();
    Sentence* place = find_sentence(request);
    if (!place) return;
    fail(request.outcome.error, "%s", place->text);
    place->request = nullptr;
}

}  // namespace starling::progress
