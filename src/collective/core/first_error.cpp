#include "collective/core/first_error.h"

#include <cstdio>
#include <new>
#include <string_view>

#include "base/counter_start.h"
#include "base/error.h"
#include "base/state.h"

namespace starling::collective {

namespace {

/// Number of stored error texts. Views are copied and the copies are not counted, so texts are overwritten in rotation. After this many
/// later errors, an error is reported without its text.
constexpr uint32_t kSentences = 256;
struct Sentence {
    uint32_t number;
    char text[1024];
};
/// The stored error texts. Each is allocated at its first use: all together would cost the first error 65 page faults, and a rank that learns
/// of a death should return at once.
STARLING_STATE Sentence* sentences[kSentences];
STARLING_STATE uint32_t next_number = kCounterStart;

}  // namespace

void FirstError::record(int error) {
    error_ = error;
    number_ = next_number++;
    Sentence*& place = sentences[number_ % kSentences];
    if (!place) place = new (std::nothrow) Sentence;
    if (!place) return;  // If there is no memory for texts, only the error class is reported.
    const std::string_view text = failure_text();
    place->number = number_;
    std::snprintf(place->text, sizeof place->text, "%.*s", static_cast<int>(text.size()), text.data());
}

void FirstError::restore_text() const {
    clear_failure();
    const Sentence* const place = sentences[number_ % kSentences];
    if (place && place->number == number_ && place->text[0]) fail(error_, "%s", place->text);
}

}  // namespace starling::collective
