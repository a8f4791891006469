// Names of signals: sigabbrev_np() needs glibc 2.32.
#pragma once

#include <csignal>

namespace starling {

/// Returns the name of a signal that can end a process, without "SIG"; null for others, such as real-time signals.
inline const char* signal_name(int signal) {
    switch (signal) {
        case SIGHUP:
            return "HUP";
        case SIGINT:
            return "INT";
        case SIGQUIT:
            return "QUIT";
        case SIGILL:
            return "ILL";
        case SIGTRAP:
            return "TRAP";
        case SIGABRT:
            return "ABRT";
        case SIGBUS:
            return "BUS";
        case SIGFPE:
            return "FPE";
        case SIGKILL:
            return "KILL";
        case SIGUSR1:
            return "USR1";
        case SIGSEGV:
            return "SEGV";
        case SIGUSR2:
            return "USR2";
        case SIGPIPE:
            return "PIPE";
        case SIGALRM:
            return "ALRM";
        case SIGTERM:
            return "TERM";
        case SIGSTKFLT:
            return "STKFLT";
        case SIGXCPU:
            return "XCPU";
        case SIGXFSZ:
            return "XFSZ";
        case SIGVTALRM:
            return "VTALRM";
        case SIGPROF:
            return "PROF";
        case SIGPOLL:
            return "POLL";
        case SIGPWR:
            return "PWR";
        case SIGSYS:
            return "SYS";
        default:
            return nullptr;
    }
}

}  // namespace starling
