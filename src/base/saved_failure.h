// A scope that preserves this thread's failure text: for cleanup after a first error, which may fail as well and whose own text would
// replace the one to be reported.
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
    char text_[1024];  ///< room for the longest text that fail() stores
};

}  // namespace starling
