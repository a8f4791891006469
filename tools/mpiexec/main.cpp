// mpiexec: parses the command line and runs the job.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/config.h"
#include "base/version.h"
#include "launch/client/allocation.h"
#include "launch/client/client.h"
#include "launch/client/debug_session.h"
#include "launch/client/last_run.h"
#include "launch/client/launch_method.h"
#include "launch/client/option_help.h"
#include "launch/client/options.h"
#include "launch/client/run_job.h"
#include "launch/client/settings.h"
#include "launch/common/processor_placement.h"
#include "launch/common/stack_limit.h"

namespace {

// The second line of --version. Programs that build command lines for mpirun look for the names of its maker in it: horovodrun for "Open MPI"
// and "MPICH", others for "HYDRA".
constexpr const char* kRelated =
    "Accepts the options of Open MPI's mpirun and of MPICH's mpiexec (HYDRA); starts programs built for either with --compat";

// If the parent closed a standard descriptor, opens /dev/null in its place, so that no segment or pipe gets its number.
void open_standard_descriptors() {
    for (int fd = 0; fd < 3; ++fd) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) < 0) _exit(1);
    }
}

int complain(std::string_view text) {
    std::fprintf(stderr, "mpiexec: %.*s\n", static_cast<int>(text.size()), text.data());
    return 1;
}

// Prints the text on standard output. Returns the exit code.
int print(const std::string& text) {
    if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
    return complain(std::string("the text can't be written to standard output: ") + std::strerror(errno));
}

// Prints where the profile is, if there is one. Returns `exit_code`.
int with_profile(const starling::launch::ProfileFile& profile, const starling::launch::Options& options, int exit_code) {
    const std::string sentence = profile.whereabouts();
    if (!options.quiet && !sentence.empty()) complain(sentence);
    return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace starling;
    open_standard_descriptors();
    if (const std::string problem = launch::stack_problem(); !problem.empty()) return complain(problem);
    unsetenv(launch::kProcessorsVariable);  // only options of this mpiexec set it
    launch::Options options;
    if (const std::string problem = parse_options({argv + 1, argv + argc}, options); !problem.empty()) return complain(problem);
    if (options.help) return print(launch::usage());
    if (options.version) return print("Starling mpiexec " + version_text() + "\n" + kRelated + "\n");
    launch::apply_settings(options.settings);
    if (options.quiet)
        read_config(false);
    else
        launch::check_settings(options.programs);
    options.profile = !options.dry_run && (options.profile || config().profile);
    if (options.profile) setenv("STARLING_PROFILE", "on", 1);  // in the environment, so that spawned processes inherit it
    if (options.way != launch::LaunchMethod::direct) {
        if (const std::string problem = launch::use_allocation(options); !problem.empty()) return complain(problem);
    }

    if (options.verbose && !options.allocation.empty()) complain(options.allocation);
    if (options.nolocal) {
        if (const std::string problem = launch::leave_out_this_machine(options.programs); !problem.empty())
            return complain(problem);
    }
    if (!options.quiet) {
        for (const std::string& note : options.notes) complain(note);
        for (const std::string& remark : options.remarks)
            if (options.verbose) complain(remark);
    }
    launch::LastRun last(options);
    last.apply();
    launch::ProfileFile profile;
    if (const std::string problem = profile.open(options); !problem.empty()) return complain(problem);
    profile.pass_to(last.record());
    if (const std::string problem = launch::hold_debugged(options); !problem.empty()) {
        complain(problem);
        return launch::kCannotStart;
    }
    launch::Choice choice = launch::choose_way(options, true, {});
    if (choice.way == launch::LaunchMethod::standing) {
        const launch::ClientOutcome outcome = launch::run_as_client(options, profile);
        if (outcome.served) {
            last.keep(outcome.exit_code);
            return with_profile(profile, options, outcome.exit_code);
        }
        choice = launch::choose_way(options, false, outcome.text);
    }
    if (!choice.problem.empty()) return complain(choice.problem);
    const int exit_code = run_job(options, argv, choice, profile);
    last.keep(exit_code);
    return with_profile(profile, options, exit_code);
}
