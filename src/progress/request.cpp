#include "progress/request.h"

#include <algorithm>
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

/// The last failures; those that nobody reports, as of requests that were freed, are overwritten in time.
constexpr size_t kSentences = 64;
struct Sentences {
    const Request* of[kSentences] = {};
    char text[kSentences][1024];  ///< as it comes from the system: untouched until it is written
};
STARLING_STATE Sentences* sentences = nullptr;  ///< made at the first failure
STARLING_STATE size_t next_sentence = 0;

/// kSentences: there is none.
size_t find_sentence(const Request& request) {
    if (!sentences) return kSentences;
    return static_cast<size_t>(std::find(sentences->of, sentences->of + kSentences, &request) - sentences->of);
}

}  // namespace

void keep_failure(const Request& request) {
    const std::string_view text = failure_text();
    if (text.empty()) return;
    if (!sentences) sentences = new (std::nothrow) Sentences;
    if (!sentences) return clear_failure();  // the error class has to do
    size_t place = find_sentence(request);
    if (place == kSentences) place = next_sentence++ % kSentences;
    sentences->of[place] = &request;
    char(&kept)[1024] = sentences->text[place];
    std::snprintf(kept, sizeof kept, "%.*s", static_cast<int>(text.size()), text.data());
    clear_failure();
}

void recall_failure(const Request& request) {
    clear_failure();
    const size_t place = find_sentence(request);
    if (place == kSentences) return;
    fail(request.outcome.error, "%s", sentences->text[place]);
    sentences->of[place] = nullptr;
}

}  // namespace starling::progress
