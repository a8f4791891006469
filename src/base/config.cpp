#include "base/config.h"

#include <strings.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/config_file.h"
#include "base/error.h"
#include "base/live.h"
#include "base/state.h"
#include "mpi.h"

extern char** environ;

namespace starling {

namespace detail {
STARLING_STATE Config the_config;
}

namespace {

constexpr char kPrefix[] = "STARLING_";
constexpr size_t kPrefixLength = sizeof kPrefix - 1;

constexpr Variable kVariables[] = {
#define OFFSET(member) static_cast<uint16_t>(offsetof(Config, member))
#define INTEGER(member, name, value, least, most, unit, scope, doc) \
    {name, VariableType::integer, VariableScope::scope, OFFSET(member), least, most, nullptr, unit, doc},
#define SIZE(member, name, value, least, most, scope, doc) \
    {name, VariableType::size, VariableScope::scope, OFFSET(member), least, most, nullptr, "bytes", doc},
#define FLAG(member, name, value, scope, doc) \
    {name, VariableType::flag, VariableScope::scope, OFFSET(member), 0, 1, nullptr, "", doc},
#define CHOICE(Type, member, name, value, scope, doc) \
    {name, VariableType::choice, VariableScope::scope, OFFSET(member), 0, 0, kChoices<Type>, "", doc},
#define TEXT(member, name, value, scope, doc) \
    {name, VariableType::text, VariableScope::scope, OFFSET(member), 0, 0, nullptr, "", doc},
#define RESERVED(name, doc) {name, VariableType::reserved, VariableScope::process, 0, 0, 0, nullptr, "", doc},
#include "base/variables.def"
};
constexpr size_t kCount = sizeof kVariables / sizeof kVariables[0];

STARLING_STATE VariableSource sources[kCount] = {};

size_t index_of(const Variable& variable) { return static_cast<size_t>(&variable - kVariables); }

template <class T>
T& member(Config& config, const Variable& variable) {
    return *reinterpret_cast<T*>(reinterpret_cast<char*>(&config) + variable.offset);
}
template <class T>
const T& member(const Config& config, const Variable& variable) {
    return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(&config) + variable.offset);
}

// Returns the factor of a suffix "K", "KiB", "kb", ..., or 0 if it is none of these.
int64_t factor(const char* suffix) {
    static constexpr char kLetters[] = "KMG";
    if (!*suffix || !strcasecmp(suffix, "B")) return 1;
    const char upper = static_cast<char>(*suffix & ~0x20);
    const char* letter = std::strchr(kLetters, upper);
    if (!letter || !*letter) return 0;
    const char* rest = suffix + 1;
    if (*rest && strcasecmp(rest, "B") && strcasecmp(rest, "iB")) return 0;
    return int64_t{1} << (10 * (letter - kLetters + 1));
}

bool parse_number(const Variable& variable, const char* text, int64_t& number) {
    char* end = nullptr;
    errno = 0;
    number = std::strtoll(text, &end, 10);
    if (end == text || errno == ERANGE) return false;
    while (*end == ' ') ++end;
    const int64_t scale = variable.type == VariableType::size ? factor(end) : !*end;
    return scale > 0 && !__builtin_mul_overflow(number, scale, &number) && number >= variable.least && number <= variable.most;
}

bool parse_flag(const char* text, bool& flag) {
    for (const char* yes : {"1", "on", "yes", "true"})
        if (!strcasecmp(text, yes)) return flag = true;
    for (const char* no : {"0", "off", "no", "false"})
        if (!strcasecmp(text, no)) return !(flag = false);
    return false;
}

bool parse_choice(const Variable& variable, const char* text, uint8_t& value) {
    for (value = 0; variable.choices[value]; ++value)
        if (!strcasecmp(text, variable.choices[value])) return true;
    return false;
}

// Stores the value; returns false if the variable does not accept it.
bool assign(const Variable& variable, const char* text, Config& to) {
    int64_t number = 0;
    switch (variable.type) {
        case VariableType::integer:
            if (!parse_number(variable, text, number)) return false;
            set_live(member<int64_t>(to, variable), number);
            return true;
        case VariableType::size:
            if (!parse_number(variable, text, number)) return false;
            set_live(member<uint64_t>(to, variable), static_cast<uint64_t>(number));
            return true;
        case VariableType::flag:
            return parse_flag(text, member<bool>(to, variable));
        case VariableType::choice: {
            uint8_t value = 0;
            if (!parse_choice(variable, text, value)) return false;
            set_live(member<uint8_t>(to, variable), value);
            return true;
        }
        case VariableType::text:
            member<const char*>(to, variable) = text;
            return true;
        case VariableType::reserved:
            return true;
    }
    return false;
}

// Writes the valid values of the variable, for error texts.
void print_allowed(const Variable& variable, char* text, size_t size) {
    if (variable.type == VariableType::flag) {
        std::snprintf(text, size, "on or off");
        return;
    }
    if (variable.type != VariableType::choice) {
        const char* suffix = variable.type == VariableType::size ? " (K, M and G may follow)" : "";
        std::snprintf(text, size, "a number from %lld to %lld%s%s%s", static_cast<long long>(variable.least),
                      static_cast<long long>(variable.most), *variable.unit ? " " : "", variable.unit, suffix);
        return;
    }
    size_t used = 0;
    for (const char* const* choice = variable.choices; *choice && used < size; ++choice) {
        const char* before = choice == variable.choices ? "" : choice[1] ? ", " : " or ";
        used += static_cast<size_t>(std::snprintf(text + used, size - used, "%s%s", before, *choice));
    }
}

[[gnu::cold]] int unknown(const char* name) {
    const Variable* near = nearest_variable(name);
    if (near) return fail(MPI_ERR_ARG, "%.100s is not a variable of Starling; did you mean %s?", name, near->name);
    return fail(MPI_ERR_ARG, "%.100s is not a variable of Starling; `starling info --variables` lists them", name);
}

// Fails with the valid values. A setting that is only checked leaves the consequence to the caller.
[[gnu::cold]] int bad_value(const Variable& variable, const char* value, bool only_checked) {
    char allowed[200], present[100];
    print_allowed(variable, allowed, sizeof allowed);
    if (only_checked) return fail(MPI_ERR_ARG, "%s takes %s, not '%.100s'", variable.name, allowed, value);
    print_value(variable, config(), present, sizeof present);
    return fail(MPI_ERR_ARG, "%s=%.100s is ignored: the variable takes %s; its value stays %s", variable.name, value, allowed,
                present);
}

int accept(const char* name, const char* value, Config& to, VariableSource source) {
    const Variable* variable = find_variable(name);
    if (!variable) return unknown(name);
    if (!assign(*variable, value, to)) return bad_value(*variable, value, &to != &detail::the_config);
    if (&to == &detail::the_config) sources[index_of(*variable)] = source;
    return MPI_SUCCESS;
}

void print_failure() { std::fprintf(stderr, "starling: %s\n", failure_text().data()); }

// Reads one line of the configuration file: NAME = value, with or without the prefix and in any case; # starts a comment. The caller must
// not free the text, because members of type text point into it. Returns MPI_ERR_ARG with failure_text() for a wrong line.
int read_line(char* line) {
    line += std::strspn(line, " \t");
    if (!*line || *line == '#') return MPI_SUCCESS;
    char* equals = std::strchr(line, '=');
    if (!equals) return fail(MPI_ERR_ARG, "'%.100s' is ignored, since it is not of the form NAME = value", line);
    char name[80];
    const size_t length = std::strcspn(line, " \t=");
    const bool prefixed = !strncasecmp(line, kPrefix, kPrefixLength);
    std::snprintf(name, sizeof name, "%s%.*s", prefixed ? "" : kPrefix, static_cast<int>(length), line);
    for (char* c = name; *c; ++c)
        if (*c >= 'a' && *c <= 'z') *c = static_cast<char>(*c & ~0x20);
    char* value = equals + 1 + std::strspn(equals + 1, " \t");
    for (char* end = value + std::strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');) *--end = '\0';
    return accept(name, value, detail::the_config, VariableSource::file);
}

void read_file(const char* path, bool must_exist, bool report) {
    FILE* file = std::fopen(path, "re");
    if (!file) {
        if (must_exist && report) std::fprintf(stderr, "starling: STARLING_CONFIG: can't read %s: %m\n", path);
        return;
    }
    constexpr size_t kMost = 64 << 10;
    char* text = static_cast<char*>(std::malloc(kMost + 1));  // never freed, because settings of type text point into it
    if (text) {
        text[std::fread(text, 1, kMost, file)] = '\0';
        if (std::ferror(file) && report) std::fprintf(stderr, "starling: STARLING_CONFIG: can't read %s: %m\n", path);
        char* rest = text;
        for (int number = 1; char* line = strsep(&rest, "\n"); ++number)
            if (read_line(line) != MPI_SUCCESS && report)
                std::fprintf(stderr, "starling: %s, line %d: %s\n", path, number, failure_text().data());
    }
    std::fclose(file);
}

void read_file(bool report) {
    char path[4096];
    if (config_file_path(path, sizeof path)) read_file(path, std::getenv("STARLING_CONFIG") != nullptr, report);
}

size_t distance(const char* a, const char* b) {
    constexpr size_t kMost = 48;
    const size_t n = std::strlen(a), m = std::strlen(b);
    if (n > kMost || m > kMost) return kMost;
    size_t row[kMost + 1];
    for (size_t j = 0; j <= m; ++j) row[j] = j;
    for (size_t i = 1; i <= n; ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; ++j) {
            const size_t above = row[j];
            const size_t change = diagonal + (a[i - 1] != b[j - 1]);
            const size_t step = (above < row[j - 1] ? above : row[j - 1]) + 1;
            row[j] = change < step ? change : step;
            diagonal = above;
        }
    }
    return row[m];
}

}  // namespace

bool config_file_path(char* path, size_t size) {
    const char* const chosen = std::getenv("STARLING_CONFIG");
    const char* const home = std::getenv("HOME");
    if (chosen ? !std::strcmp(chosen, "none") : !home) return false;
    std::snprintf(path, size, "%s%s", chosen ? chosen : home, chosen ? "" : "/.config/starling.conf");
    return true;
}

const Variable* variables(size_t& count) {
    count = kCount;
    return kVariables;
}

const Variable* find_variable(const char* name) {
    for (const Variable& variable : kVariables)
        if (!std::strcmp(variable.name, name)) return &variable;
    return nullptr;
}

const Variable* nearest_variable(const char* name) {
    const Variable* best = nullptr;
    size_t least = 0;
    for (const Variable& variable : kVariables) {
        if (variable.type == VariableType::reserved) continue;
        const size_t d = distance(name, variable.name);
        if (best && d >= least) continue;
        best = &variable;
        least = d;
    }
    // A name that differs in half the letters after the prefix is not a misspelling but another word.
    const size_t length = std::strlen(name);
    return best && least * 2 <= (length > kPrefixLength ? length - kPrefixLength : 0) + 1 ? best : nullptr;
}

VariableSource source_of(const Variable& variable) { return sources[index_of(variable)]; }

void print_value(const Variable& variable, const Config& from, char* text, size_t size) {
    switch (variable.type) {
        case VariableType::integer:
            std::snprintf(text, size, "%lld", static_cast<long long>(member<int64_t>(from, variable)));
            return;
        case VariableType::size:
            std::snprintf(text, size, "%llu", static_cast<unsigned long long>(member<uint64_t>(from, variable)));
            return;
        case VariableType::flag:
            std::snprintf(text, size, "%s", member<bool>(from, variable) ? "on" : "off");
            return;
        case VariableType::choice:
            std::snprintf(text, size, "%s", variable.choices[member<uint8_t>(from, variable)]);
            return;
        case VariableType::text: {
            const char* value = member<const char*>(from, variable);
            std::snprintf(text, size, "%s", value ? value : "");
            return;
        }
        case VariableType::reserved:
            std::snprintf(text, size, "%s", "");
    }
}

int check_setting(const char* name, const char* value) {
    if (std::strncmp(name, kPrefix, kPrefixLength) != 0) return MPI_SUCCESS;
    Config scratch;
    return accept(name, value, scratch, VariableSource::environment);
}

int set_variable(const char* name, const char* value, VariableSource source) {
    return accept(name, value, detail::the_config, source);
}

bool reports_settings() {
    if (std::getenv("STARLING_CHECKED")) return false;
    // Another process manager's variable shows the rank too.
    for (const char* name : {"STARLING_RANK", "PMIX_RANK", "PMI_RANK"}) {
        if (const char* rank = std::getenv(name)) return !std::strcmp(rank, "0");
    }
    return true;
}

void read_config(bool report) {
    read_file(report);
    for (char** entry = environ; entry && *entry; ++entry) {
        if (std::strncmp(*entry, kPrefix, kPrefixLength) != 0) continue;
        const char* equals = std::strchr(*entry, '=');
        char name[80];
        if (!equals || static_cast<size_t>(equals - *entry) >= sizeof name) continue;
        std::snprintf(name, sizeof name, "%.*s", static_cast<int>(equals - *entry), *entry);
        if (accept(name, equals + 1, detail::the_config, VariableSource::environment) != MPI_SUCCESS && report) print_failure();
    }
    clear_failure();  // the settings are not an error of the call that reads them
}

}  // namespace starling
