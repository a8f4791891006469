// lab-machine: process 1 of a virtual machine (tests/lab-verbs) that already has its network and file systems; does what lab-hosts'
// children do in their namespaces. Prints on the console that it is ready; afterwards it serves agents only.
#include "session.h"

int main() { starling::lab::serve_host(true, "lab-machine: ready\n"); }
