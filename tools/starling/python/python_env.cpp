#include "starling/python/python_env.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "launch/common/text.h"
#include "launch/process/compat.h"
#include "starling/python/interpreter.h"

namespace starling {

namespace {

namespace fs = std::filesystem;

int fail(const std::string& sentence) {
    fmt::print(stderr, "starling python-env: {}\n", sentence);
    return 1;
}

// Returns the text as one word of a shell, which both sh and fish read.
std::string shell_word(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\')
            out += c == '\'' ? "'\\''" : "'\"\\\\\"'";
        else
            out += c;
    }
    return out + "'";
}

// Comments are on the last line, because `eval $(...)` without quotes joins all lines.
void print_comment(const std::string& text) { fmt::print("# {}\n", text); }

void print_variable(const PythonOptions& options, const std::string& name, const std::string& value) {
    const bool fish = options.shell == "fish";
    fmt::print("{} {}{}{};\n", fish ? "set -gx" : "export", name, fish ? " " : "=", shell_word(value));
}

void print_path(const PythonOptions& options, const std::string& folder) {
    if (options.shell == "fish")
        fmt::print("set -gx LD_LIBRARY_PATH {} $LD_LIBRARY_PATH;\n", shell_word(folder));
    else
        fmt::print("export LD_LIBRARY_PATH={}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}};\n", shell_word(folder));
}

int print_commands(const PythonOptions& options, const Interpreter& python, const Mpi4py& mpi4py) {
    if (mpi4py.kind == Mpi4pyKind::starling) {
        print_comment(fmt::format("nothing is needed: the mpi4py in {} is linked with Starling", python.mpi4py));
        return 0;
    }
    if (mpi4py.kind == Mpi4pyKind::linked) {
        print_path(options, fs::path(mpi4py.library).parent_path());
        print_comment(fmt::format("the mpi4py in {} is linked with {}", python.mpi4py, mpi4py.linked_with));
        return 0;
    }
    // With MPI4PY_MPIABI mpi4py does not look at the library.
    if (std::getenv("MPI4PY_MPIABI"))
        fmt::print("{} MPI4PY_MPIABI;\n", options.shell == "fish" ? "set -e" : "unset");
    print_variable(options, "MPI4PY_LIBMPI", mpi4py.library);
    print_comment(fmt::format("the mpi4py in {} loads the library that MPI4PY_LIBMPI names", python.mpi4py));
    return 0;
}

std::string file_of(const Interpreter& python) { return python.packages + "/starling-mpi4py.pth"; }

int install(const Interpreter& python, const Mpi4py& mpi4py) {
    if (mpi4py.kind == Mpi4pyKind::starling)
        return fmt::print("nothing is needed: the mpi4py in {} is linked with Starling\n", python.mpi4py), 0;
    if (mpi4py.kind == Mpi4pyKind::linked)
        return fail(
            fmt::format("--install cannot help: the mpi4py in {} is linked with {}, which only LD_LIBRARY_PATH "
                        "replaces; set it by eval \"$(starling python-env {})\"",
                        python.mpi4py, mpi4py.linked_with, shell_word(python.program)));
    if (mpi4py.library.find_first_of("'\\\n") != std::string::npos)
        return fail(
            fmt::format("--install: the path {} has a quote, a backslash or a line break, which the file cannot contain; "
                        "move the installation",
                        launch::printable(mpi4py.library)));
    const std::string file = file_of(python);
    std::ofstream out(file);
    out << "import os; os.environ.setdefault('MPI4PY_LIBMPI', '" << mpi4py.library << "')\n";
    out.close();
    if (!out)
        return fail(
            fmt::format("cannot write {}: {}; name a Python of a virtual environment of yours, or use eval "
                        "\"$(starling python-env {})\"",
                        file, std::strerror(errno), shell_word(python.program)));
    fmt::print("wrote {}: mpi4py of {} loads Starling from now on (--remove undoes it)\n", file, python.program);
    return 0;
}

int remove_file(const Interpreter& python) {
    const std::string file = file_of(python);
    std::error_code error;
    if (fs::remove(file, error)) return fmt::print("removed {}\n", file), 0;
    if (!error) return fail(fmt::format("there is no {}; nothing was removed", file));
    return fail(fmt::format("cannot remove {}: {}", file, error.message()));
}

// Returns whether Starling was installed into the interpreter's environment by pip, where mpi4py finds it.
bool shares_prefix(const Interpreter& python) {
    const fs::path libraries = launch::library_folder();
    std::error_code error;
    return fs::exists(libraries / "libmpi.so.12", error) && fs::equivalent(libraries.parent_path(), python.prefix, error);
}

}  // namespace

int python_env(const PythonOptions& options) {
    Interpreter python;
    if (const std::string problem = ask_interpreter(options.python, python); !problem.empty()) return fail(problem);
    if (options.remove) return remove_file(python);
    if (python.mpi4py.empty())
        return fail(
            fmt::format("{} has no mpi4py; install it by {} -m pip install mpi4py", options.python, shell_word(options.python)));
    if (shares_prefix(python)) return fmt::print("# nothing is needed: mpi4py finds Starling in {}\n", python.prefix), 0;
    const Mpi4py mpi4py = examine_mpi4py(python.mpi4py);
    if (mpi4py.kind == Mpi4pyKind::unknown)
        return fail(
            fmt::format("the mpi4py in {} is linked with no MPI library that Starling can replace; reinstall it by {} -m pip "
                        "install --force-reinstall mpi4py",
                        python.mpi4py, shell_word(options.python)));
    if (mpi4py.library.empty())
        return fail("the libraries for programs of other MPIs are missing beside Starling's; reinstall Starling");
    return options.install ? install(python, mpi4py) : print_commands(options, python, mpi4py);
}

}  // namespace starling
