/* Bandwidth of a TCP connection between two hosts over plain sockets: windows of messages in one direction, each window acknowledged, from
 * and to one buffer, as in the MPI benchmark. */
#include "raw/raw.h"

static void windows(const Raw* raw, int fd, char* buffer, size_t bytes, long iterations) {
    char word = 0;
    for (long i = 0; i < iterations; ++i) {
        for (int k = 0; k < raw->window; ++k) {
            if (raw->peer) {
                raw_send(raw, fd, buffer, bytes);
            } else {
                raw_receive(raw, fd, buffer, bytes);
            }
        }
        if (raw->peer) {
            raw_receive(raw, fd, &word, 1);
        } else {
            raw_send(raw, fd, &word, 1);
        }
    }
}

static double rate(const Raw* raw, size_t bytes, double seconds) { return 1e-6 * (double)bytes * raw->window / seconds; }

int main(int argc, char** argv) {
    Raw raw = raw_start(argc, argv, "65536,1048576,4194304");
    return raw_measure(&raw, raw_tcp(&raw), windows, "tcp-bandwidth", "MB/s", rate);
}
