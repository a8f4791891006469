"""Scheduling classes, for runs at real-time priority (chrt -r 20 bench/compare ...).

Two real-time processes of one core alternate in slices of 100 ms, and a process that yields waits for the other's whole slice: a message
that takes 50 us beside an ordinary busy loop then takes 0.1 s, and the cases beside busy loops never end. So the processes of such cases and
their busy loops are made ordinary ones. They have the highest ordinary priority, so that they still precede other work of the machine.
"""
import os
import socket
import struct


def is_real_time():
    """Returns whether this process, and so every process that it starts, has a real-time class."""
    return os.sched_getscheduler(0) in (os.SCHED_RR, os.SCHED_FIFO)


def pid_of(connection):
    """Returns the process at the other end of a Unix socket."""
    size = struct.calcsize("3i")
    return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0]


def make_ordinary(pid):
    """Gives all threads of a process the ordinary class and its highest priority. Where the kernel schedules each session as a group (autogroup),
    the session gets it too: priorities count only within a group. Does nothing if the process has ended."""
    try:
        for thread in map(int, os.listdir(f"/proc/{pid}/task")):
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, thread, -20)
        with open(f"/proc/{pid}/autogroup", "w", encoding="ascii") as file:
            file.write("-20")
    except (FileNotFoundError, ProcessLookupError):
        pass  # the process or a thread has ended, or the kernel has no such groups
