// The files of a run: real ones, in a folder of the run's own. Their system calls end turns, move less than asked now and then, and the
// descriptors of a dead rank are closed, which releases its locks.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "world.h"

namespace starling::simulation {

/// Returns the folder of the run in the real process with this id.
std::string folder_of_run(pid_t pid);
/// Names the folder of this run, which is created by make_folder(). Called before the world begins.
void begin_files(pid_t pid);
/// Returns the folder of this run, and creates it if it is not there.
const std::string& make_folder();
/// Removes the folder of a run.
void remove_folder(pid_t pid);
/// Returns the names of the files that are in the folder of this run.
std::vector<std::string> list_folder();

/// Notes that the running process has opened `path` as `fd`, if that is a file of the run.
void note_file(const char* path, int fd);
/// Notes that a descriptor is closed.
void forget_file(int fd);
/// Closes a process's descriptors of files, as the kernel does when it ends.
void close_files_of(const Process& process);

}  // namespace starling::simulation
