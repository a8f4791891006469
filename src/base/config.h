// The configuration: the variables of variables.def, read once and then available as plain members.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling {

enum class WaitPolicy : uint8_t { poll, adaptive, thread };
enum class Authentication : uint8_t { key, munge };
enum class SingleCopy : uint8_t { automatic, on, off };
enum class Singleton : uint8_t { automatic, allow };
/// How the data of a rendezvous message is transferred: message/protocol/table.h.
enum class LongProtocol : uint8_t { automatic, pieces, kernel, both, stream, read, note, write };
/// The MPI whose binary interface a shim provides in front of this library: docs/compatibility.md.
enum class Compat : uint8_t { off, automatic, mpich, openmpi };
/// The source of the plan that decides which peers have connections: docs/plan.md.
enum class PlanSource : uint8_t { demand, first, learn, file, automatic, cached };
/// How a communicator obtains a multicast group: docs/multicast.md.
enum class Multicast : uint8_t { automatic, off, basic, lazy, pool };
/// When OpenSHMEM's PEs exchange their addresses: at the first access, or all in shmem_init.
enum class Connect : uint8_t { demand, all };
/// Whether InfiniBand and RoCE are used: docs/verbs.md.
enum class VerbsUse : uint8_t { automatic, off, require };
/// Whether a failed call returns a code that stands for its sentence, or the error class itself: comm/error_sentences.h.
enum class ErrorCodes : uint8_t { sentences, classes };
/// The error handler that predefined communicators have at first: comm/initial_errhandler.h.
enum class InitialErrhandler : uint8_t { are_fatal, abort, return_code };
enum class Pmi : uint8_t { automatic, none, pmix, pmi2, pmi1 };

/// The names of an enum type's values, in the order of the values. The specializations end with nullptr.
template <class Enum>
inline constexpr const char* const kChoices[] = {nullptr};
template <>
inline constexpr const char* const kChoices<WaitPolicy>[] = {"poll", "adaptive", "thread", nullptr};
template <>
inline constexpr const char* const kChoices<Authentication>[] = {"key", "munge", nullptr};
template <>
inline constexpr const char* const kChoices<SingleCopy>[] = {"auto", "on", "off", nullptr};
template <>
inline constexpr const char* const kChoices<Singleton>[] = {"auto", "allow", nullptr};
template <>
inline constexpr const char* const kChoices<LongProtocol>[] = {"auto", "pieces", "kernel", "both", "stream",
                                                               "read", "note",   "write",  nullptr};
template <>
inline constexpr const char* const kChoices<Compat>[] = {"off", "auto", "mpich", "openmpi", nullptr};
template <>
inline constexpr const char* const kChoices<PlanSource>[] = {"demand", "static", "learn", "file", "auto", "cached", nullptr};
template <>
inline constexpr const char* const kChoices<Multicast>[] = {"auto", "off", "basic", "lazy", "pool", nullptr};
template <>
inline constexpr const char* const kChoices<Connect>[] = {"demand", "all", nullptr};
template <>
inline constexpr const char* const kChoices<VerbsUse>[] = {"auto", "off", "require", nullptr};
template <>
inline constexpr const char* const kChoices<ErrorCodes>[] = {"sentences", "classes", nullptr};
template <>
inline constexpr const char* const kChoices<InitialErrhandler>[] = {"mpi_errors_are_fatal", "mpi_errors_abort",
                                                                    "mpi_errors_return", nullptr};
template <>
inline constexpr const char* const kChoices<Pmi>[] = {"auto", "none", "pmix", "pmi2", "pmi1", nullptr};

/// The value of every variable. Numbers are in the unit of the variable's row. Texts live as long as the
/// process.
struct Config {
#define INTEGER(member, name, value, least, most, unit, scope, doc) int64_t member = value;
#define SIZE(member, name, value, least, most, scope, doc) uint64_t member = value;
#define FLAG(member, name, value, scope, doc) bool member = value;
#define CHOICE(Type, member, name, value, scope, doc) Type member = value;
#define TEXT(member, name, value, scope, doc) const char* member = value;
#define RESERVED(name, doc)
#include "base/variables.def"
#undef INTEGER
#undef SIZE
#undef FLAG
#undef CHOICE
#undef TEXT
#undef RESERVED
};

namespace detail {
extern Config the_config;
}

/// This process's configuration: the defaults until read_config(). Reading it costs a load.
inline const Config& config() { return detail::the_config; }

/// Reads the configuration file, then the environment, which takes precedence. Called by MPI_Init and the tools before threads start.
/// Unknown and invalid settings are ignored and, if `report`, printed on standard error, one line each. Clears failure_text().
void read_config(bool report);

/// Returns whether this process is the one of its job that reports bad settings: rank 0 or a singleton, unless the launcher has reported
/// them.
bool reports_settings();

enum class VariableType : uint8_t { integer, size, flag, choice, text, reserved };
enum class VariableScope : uint8_t { job, process, live, launcher };
enum class VariableSource : uint8_t { built_in, file, environment, program };

/// One row of the table of variables.
struct Variable {
    const char* name;
    VariableType type;
    VariableScope scope;
    uint16_t offset;  ///< offset of the member in Config; unused if reserved
    int64_t least, most;
    const char* const* choices;  ///< names of the values of a choice, ending with nullptr; nullptr for any other type
    const char* unit;            ///< unit of the value; may be empty
    const char* doc;
};

/// Returns the rows, in the order of variables.def.
const Variable* variables(size_t& count);
/// Returns the row of this name, or nullptr if there is none.
const Variable* find_variable(const char* name);
/// Returns the row whose name is most similar to a misspelled one, or nullptr if none is similar.
const Variable* nearest_variable(const char* name);
/// Returns where the present value was set.
VariableSource source_of(const Variable& variable);

/// Writes the variable's value in `from` as text that set_variable() accepts, cut at `size`. An unset text is written as "".
void print_value(const Variable& variable, const Config& from, char* text, size_t size);

/// Checks one setting as found in an environment. Returns MPI_SUCCESS, or MPI_ERR_ARG with the line to print in failure_text(). Names that
/// do not start with STARLING_ pass unchecked.
int check_setting(const char* name, const char* value);

/// Sets a variable as if the environment had set it. Returns MPI_ERR_ARG with failure_text() as check_setting() does.
int set_variable(const char* name, const char* value, VariableSource source = VariableSource::program);

}  // namespace starling
