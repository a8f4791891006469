#include "base/recovery_defaults.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/config.h"

namespace starling {

namespace {

// docs/launch.md, "Detection in jobs with --enable-recovery", has the reasons and the measurements.
constexpr RecoveryDefault kDefaults[] = {
    {"STARLING_IP_TIMEOUT", 10},
    {"STARLING_HEARTBEAT_MS", 50},
    {"STARLING_SILENCE_MS", 240},
    {"STARLING_REATTACH_MS", 1000},
};

}  // namespace

const RecoveryDefault* recovery_defaults(size_t& count) {
    count = sizeof kDefaults / sizeof kDefaults[0];
    return kDefaults;
}

const RecoveryDefault* find_recovery_default(const char* name) {
    for (const RecoveryDefault& row : kDefaults)
        if (!std::strcmp(row.name, name)) return &row;
    return nullptr;
}

int64_t value_with_recovery(const char* name) {
    const Variable* const variable = find_variable(name);
    const RecoveryDefault* const row = find_recovery_default(name);
    if (row && source_of(*variable) == VariableSource::built_in) return row->value;
    char value[24];
    print_value(*variable, config(), value, sizeof value);
    return std::strtoll(value, nullptr, 10);
}

void use_recovery_default(const char* name) {
    char value[24];
    std::snprintf(value, sizeof value, "%lld", static_cast<long long>(value_with_recovery(name)));
    set_variable(name, value, source_of(*find_variable(name)));
}

}  // namespace starling
