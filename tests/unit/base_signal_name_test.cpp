#include "base/signal_name.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

namespace {

// Signals whose default action ends the process have the C library's name; the others end none.
TEST(SignalName, IsTheCLibrarys) {
    int named = 0;
    for (int signal = 1; signal < SIGSYS + 1; ++signal) {
        const char* const name = starling::signal_name(signal);
        if (!name) continue;
        ++named;
        EXPECT_STREQ(name, sigabbrev_np(signal)) << signal;
    }
    EXPECT_EQ(named, 23);
    for (const int harmless : {SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH})
        EXPECT_EQ(starling::signal_name(harmless), nullptr);
    EXPECT_EQ(starling::signal_name(SIGRTMIN), nullptr);
}

}  // namespace
