#include "transports.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace starling {

namespace {

std::string shared_memory() {
    const int fd = memfd_create("starling-info", MFD_CLOEXEC);
    if (fd < 0) return std::string("not usable: memfd_create: ") + std::strerror(errno);
    close(fd);
    return "usable";
}

// Whether one process may read another's memory, as ranks of one job do: tried by a child on its parent.
std::string kernel_copy() {
    static volatile long secret = 0;
    secret = 4711;
    const pid_t child = fork();
    if (child < 0) return "unknown: no process could be started to try it";
    if (child == 0) {
        long seen = 0;
        iovec local{&seen, sizeof seen}, remote{const_cast<long*>(&secret), sizeof secret};
        if (process_vm_readv(getppid(), &local, 1, &remote, 1, 0) != sizeof seen) _exit(errno);
        _exit(seen == 4711 ? 0 : EIO);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) return "usable";
    return std::string("not usable (") + std::strerror(WEXITSTATUS(status)) +
           "): large messages are copied twice; kernel.yama.ptrace_scope=0 or CAP_SYS_PTRACE allow it";
}

}  // namespace

std::vector<TransportReport> transports() {
    return {{"shm inbox (base path)", shared_memory()},
            {"shm direct rings", shared_memory()},
            {"shm kernel copy (process_vm_readv)", kernel_copy()}};
}

}  // namespace starling
