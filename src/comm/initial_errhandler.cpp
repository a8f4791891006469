#include "comm/initial_errhandler.h"

#include <strings.h>

#include <cstdlib>
#include <optional>

#include "base/config.h"

namespace starling::comm {

namespace {

constexpr char kVariable[] = "STARLING_INITIAL_ERRHANDLER";
constexpr auto& kNames = kChoices<InitialErrhandler>;

std::optional<InitialErrhandler> chosen() {
    if (source_of(*find_variable(kVariable)) != VariableSource::built_in) return config().initial_errhandler;
    const char* text = std::getenv(kVariable);
    if (!text) return std::nullopt;
    for (uint8_t i = 0; kNames[i]; ++i)
        if (!strcasecmp(text, kNames[i])) return static_cast<InitialErrhandler>(i);
    return std::nullopt;
}

}  // namespace

Errhandler* initial_errhandler() {
    switch (chosen().value_or(InitialErrhandler::are_fatal)) {
        case InitialErrhandler::abort:
            return errors_abort();
        case InitialErrhandler::return_code:
            return errors_return();
        case InitialErrhandler::are_fatal:
            break;
    }
    return errors_are_fatal();
}

const char* initial_errhandler_name() {
    const auto handler = chosen();
    return handler ? kNames[static_cast<uint8_t>(*handler)] : nullptr;
}

}  // namespace starling::comm
