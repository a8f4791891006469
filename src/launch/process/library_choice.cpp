#include "launch/process/library_choice.h"

#include "base/config.h"
#include "base/library_mark.h"
#include "job/environment.h"
#include "launch/process/compat.h"
#include "launch/process/elf_file.h"
#include "launch/process/foreign_mpi_check.h"

namespace starling::launch {

namespace {

std::string refusal(const std::string& program, const OtherLibrary& library) {
    const std::string compat = *library.binary_interface ? "add --compat auto to run it on Starling as it is, " : "";
    return "'" + program + "' is linked with " + library.name +
           ", whose processes can't find each other under Starling's mpiexec, so that each would be alone; " + compat +
           "compile it with Starling's mpicc, start it with that library's mpiexec, or set STARLING_SINGLETON=allow if that is "
           "meant";
}

void hide_managers(bool alone, ProcessEnvironment& environment) {
    if (!alone || !environment.value(job::kPmiVariable).empty())
        environment.set(job::kPmiVariable, alone ? job::kAlonePmi : job::kNoPmi);
    if (!environment.value(job::kPmixVariable).empty()) environment.set(job::kPmixVariable, "");
}

// Puts a folder or file in front of a variable's list.
void put_in_front(ProcessEnvironment& environment, const char* name, const std::string& first) {
    const std::string_view rest = environment.value(name);
    environment.set(name, rest.empty() ? first : first + ":" + std::string(rest));
}

void redirect(ProcessEnvironment& environment) {
    const Redirection to = find_redirection();
    if (to.audit.empty()) return;
    environment.set(kLibrariesVariable, to.libraries);
    if (environment.value("LD_AUDIT").find(to.audit) == std::string_view::npos) put_in_front(environment, "LD_AUDIT", to.audit);
}

// valgrind's own end of a process is reported as an error of the program if there is an audit library.
bool bears_audit(const std::string& path) { return path.substr(path.rfind('/') + 1) != "valgrind"; }

// Returns whether the loader handles the file: it does not handle a static program. It handles the interpreters of scripts.
bool has_loader(const ElfFile& file) { return !file.valid() || !file.interpreter().empty(); }

}  // namespace

bool allows_singletons(const ProcessEnvironment& environment) {
    return config().singleton == Singleton::allow || environment.value("STARLING_SINGLETON") == "allow";
}

LibraryChoice choose_libraries(const StartedProgram& program, ProcessEnvironment& environment) {
    const std::string setting(environment.value("STARLING_COMPAT"));
    const bool lonely = allows_singletons(environment);
    if (!lonely) hide_managers(program.alone, environment);
    const ElfFile file(program.path);
    if (!has_loader(file)) return {};
    const OwnLibrary own = find_own_library(file, environment.value("LD_LIBRARY_PATH"));
    const bool replaced = own == OwnLibrary::absent || (own == OwnLibrary::foreign && !lonely);
    if (const std::string folder = replaced ? library_folder() : std::string(); !folder.empty()) {
        put_in_front(environment, "LD_LIBRARY_PATH", folder);
        if (file.has_path()) redirect(environment);
    }
    if (setting.empty() && own != OwnLibrary::not_needed) return {};
    if (setting.empty() && lonely) return {};
    const OtherLibrary other = other_library_of(file);
    const Shims shims = choose_shims(is_compat(setting) ? setting : "auto", other);
    if (!shims.problem.empty())
        return setting.empty() && (program.alone || other.name.empty())
                   ? LibraryChoice{}
                   : LibraryChoice{"'" + program.name + "': " + shims.problem};
    if (shims.library_path.empty())
        return other.name.empty() || program.alone || lonely ? LibraryChoice{} : LibraryChoice{refusal(program.name, other)};
    // Interpreters and start scripts load any library, and may change the path. A program without an RPATH obeys it.
    put_in_front(environment, "LD_LIBRARY_PATH", shims.library_path);
    if ((other.name.empty() || file.has_path()) && bears_audit(program.path)) redirect(environment);
    // A program that is linked with no MPI gets the names only on request: it may start others, for which they would be wrong.
    return {{}, setting.empty() && other.name.empty() ? ForeignNames{} : shims.names};
}

}  // namespace starling::launch
