// lab-machine: process 1 of a virtual machine (tests/lab-verbs), once that has its network and its file systems: what lab-hosts'
// children are in their namespaces. Says on the console that it is ready; then only agents speak with it.
#include "session.h"

int main() { starling::lab::serve_host(true, "lab-machine: ready\n"); }
