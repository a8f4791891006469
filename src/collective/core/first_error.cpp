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
struct Sentences {
    struct {
        bool used = false;
        uint32_t number;
        char text[1024];  ///< text, left uninitialized, so that the system allocates its pages only when they are written
    } at[kSentences];
};
STARLING_STATE Sentences* sentences = nullptr;  ///< stored error texts, allocated at the first error
STARLING_STATE uint32_t next_number = kCounterStart;

}  // namespace

void FirstError::record(int error) {
    error_ = error;
    number_ = next_number++;
    if (!sentences) sentences = new (std::nothrow) Sentences;
    if (!sentences) return;  // If there is no memory for texts, only the error class is reported.
    auto& place = sentences->at[number_ % kSentences];
    const std::string_view text = failure_text();
    place.used = true;
    place.number = number_;
    std::snprintf(place.text, sizeof place.text, "%.*s", static_cast<int>(text.size()), text.data());
}

void FirstError::restore_text() const {
    clear_failure();
    if (!sentences) return;
    const auto& place = sentences->at[number_ % kSentences];
    if (place.used && place.number == number_ && place.text[0]) fail(error_, "%s", place.text);
}

}  // namespace starling::collective
