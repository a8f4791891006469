// `starling python-env`: what a Python that mpiexec does not start needs, so that its mpi4py loads Starling.
#pragma once

#include <string>

namespace starling {

struct PythonOptions {
    std::string python = "python3";  ///< the interpreter, a path or a name in PATH
    std::string shell = "sh";        ///< "sh" or "fish"
    bool install = false;            ///< write a file that the interpreter reads whenever it starts
    bool remove = false;             ///< remove that file
};

/// Prints the variables as commands of a shell, or installs them. Returns the exit code: 1 if that mpi4py cannot run on Starling.
int python_env(const PythonOptions& options);

}  // namespace starling
