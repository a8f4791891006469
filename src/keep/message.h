// The sentence about the last error in this thread, which starling_keep_message() returns.
#pragma once

namespace starling::keep {

/// Sets the sentence and returns `error`, an error class.
[[gnu::format(printf, 2, 3)]] int fail(int error, const char* format, ...);

const char* last_message();

}  // namespace starling::keep
