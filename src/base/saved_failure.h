// What this thread's failure is when a scope begins it is at its end: for what is done after a first error, which may fail as well, and whose
// sentence nobody is told.
#pragma once

#include <cstring>

#include "base/error.h"

namespace starling {

class SavedFailure {
  public:
    SavedFailure() {
        const std::string_view text = failure_text();
        std::memcpy(text_, text.data(), text.size());
        text_[text.size()] = '\0';
    }
    ~SavedFailure() {
        clear_failure();
        if (text_[0]) fail(0, "%s", text_);
    }
    SavedFailure(const SavedFailure&) = delete;

  private:
    char text_[1024];  ///< as long as the longest sentence
};

}  // namespace starling
