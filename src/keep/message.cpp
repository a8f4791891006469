#include "keep/message.h"

#include <cstdarg>
#include <cstdio>

namespace starling::keep {

namespace {

thread_local char text[400] = "no function of the store has failed";

}  // namespace

int fail(int error, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return error;
}

const char* last_message() { return text; }

}  // namespace starling::keep
