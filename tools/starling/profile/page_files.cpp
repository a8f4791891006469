#include "page_files.h"

// Embeds the files' bytes; the build defines the names, and compiles this file again if they change.
#define STARLING_PART(name, file)          \
    __asm__(".section .rodata\n" #name     \
            ":\n"                          \
            ".incbin \"" file "\"\n" #name \
            "_end:\n"                      \
            ".byte 0\n.previous\n");       \
    extern "C" __attribute__((visibility("hidden"))) const char name[], name##_end[]

STARLING_PART(starling_page, STARLING_PAGE);
STARLING_PART(starling_style, STARLING_STYLE);
STARLING_PART(starling_helpers, STARLING_HELPERS);
#ifdef STARLING_CHART
STARLING_PART(starling_chart, STARLING_CHART);
#endif

namespace starling::analysis {

std::string_view page_template() { return {starling_page, static_cast<size_t>(starling_page_end - starling_page)}; }
std::string_view page_style() { return {starling_style, static_cast<size_t>(starling_style_end - starling_style)}; }
std::string_view page_helpers() { return {starling_helpers, static_cast<size_t>(starling_helpers_end - starling_helpers)}; }

std::string_view chart_library() {
#ifdef STARLING_CHART
    return {starling_chart, static_cast<size_t>(starling_chart_end - starling_chart)};
#else
    return {};
#endif
}

}  // namespace starling::analysis
