// A process that behaves toward its launcher like an MPI rank, without the MPI library. Each argument is an action:
//   init | finalize | abort CODE | exit CODE | crash | sleep MS | print TEXT | pid FILE | await FILE
//   spawn N COMMAND ARGUMENTS... | spawn-info KEY=VALUE N COMMAND ARGUMENTS... | disconnect
//   wait-child | universe | publish NAME PORT | publish-long BYTES | unpublish NAME | lookup NAME
// In a spawned command, ~ is replaced by a blank within an argument.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "control/control.h"
#include "control/local_socket.h"
#include "job/environment.h"

using namespace starling;
using namespace starling::job;
using namespace starling::control;

namespace {

JobSegment own;
uint32_t own_rank = 0;
JobSegment child;

void pause_ms(long ms) {
    const timespec time{ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, nullptr);
}

[[noreturn]] void fail_with(const std::string& what) {
    std::printf("probe: %s: %s\n", what.c_str(), std::string(failure_text()).c_str());
    std::fflush(stdout);
    _exit(99);
}

void init() {
    ProcessIdentity identity;
    if (read_identity(identity)) fail_with("identity");
    if (identity.launched) {
        if (JobSegment::open(identity.job, own)) fail_with("open");
        own_rank = identity.rank;
    } else if (JobSegment::create(1, nullptr, 0, own)) {
        fail_with("create");
    }
    own.cell(own_rank).pid.store(getpid());
    own.cell(own_rank).state.store(RankState::initialized);
}

std::string call(MessageKind kind, const std::string& payload) {
    ControlCall call;
    if (ControlCall::start(own, own_rank, kind, payload, call)) fail_with("call");
    bool done = false;
    for (int i = 0; i < 1000000 && !done; ++i) {
        if (call.poll(done)) fail_with("poll");
        if (!done) usleep(20);
    }
    if (!done) fail_with("no reply");
    return call.reply();
}

double now_ms() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

void spawn(std::istringstream& words, bool with_info) {
    SpawnRequest request;
    request.blob = "parents";
    SpawnCommand& command = request.commands.emplace_back();
    std::string word;
    if (with_info) {
        words >> word;
        command.info.emplace_back(word.substr(0, word.find('=')), word.substr(word.find('=') + 1));
    }
    words >> command.maxprocs;
    while (words >> word) {
        std::replace(word.begin(), word.end(), '~', ' ');
        command.argv.push_back(word);
    }
    const double begin = now_ms();
    SpawnReply reply;
    if (!decode(call(MessageKind::spawn, encode(request)), reply)) fail_with("spawn reply");
    const double took = now_ms() - begin;
    std::printf("spawn %d codes", reply.error_class);
    for (const int32_t code : reply.codes) std::printf(" %d", code);
    std::printf(" text '%s'", reply.text.c_str());
    if (std::getenv("PROBE_TIMES")) std::printf(" %.2f ms", took);
    if (reply.error_class == 0) {
        // The segment of a child that is not a probe may be closed: the child may have ended already.
        if (JobSegment::open(reply.job, child) == 0)
            std::printf(" size %u blob %.*s", child.header().size, static_cast<int>(child.header().blob_size),
                        reinterpret_cast<const char*>(child.blob()));
    }
    std::printf("\n");
}

void wait_child() {
    for (int i = 0; i < 30000 && job_alive(child); ++i) pause_ms(1);
    std::printf("child state %u failed rank %d\n", static_cast<unsigned>(child.header().state.load()),
                child.header().failed_rank.load());
}

void name(MessageKind kind, std::istringstream& words) {
    NameRequest request;
    words >> request.service >> request.port;
    NameReply reply;
    if (!decode(call(kind, encode(request)), reply)) fail_with("name reply");
    std::printf("name %d port '%s' text '%s'\n", reply.error_class, reply.port.c_str(), reply.text.c_str());
}

// Sends a request beyond the size limit.
void publish_long(std::istringstream& words) {
    size_t bytes = 0;
    words >> bytes;
    ControlHello hello;
    hello.job = own.header().id;
    std::copy(std::begin(own.header().secret), std::end(own.header().secret), hello.secret);
    hello.rank = own_rank;
    const int fd = connect_local(own.header().control_socket, kLauncherMs);
    send_all(fd, encode_frame(MessageKind::hello, encode(hello)) +
                     encode_frame(MessageKind::publish, encode(NameRequest{0, std::string(bytes, 'x'), "p"})));
    char reply;
    std::printf(recv(fd, &reply, 1, 0) <= 0 ? "hung up\n" : "answered\n");
    close(fd);
}

void act(const std::string& action) {
    std::istringstream words(action);
    std::string verb, argument;
    words >> verb;
    if (verb == "init") return init();
    if (verb == "finalize") return own.cell(own_rank).state.store(RankState::finalized);
    if (verb == "spawn" || verb == "spawn-info") return spawn(words, verb == "spawn-info");
    if (verb == "wait-child") return wait_child();
    if (verb == "publish") return name(MessageKind::publish, words);
    if (verb == "unpublish") return name(MessageKind::unpublish, words);
    if (verb == "universe") {
        std::printf("universe %u\n", own.header().universe_size);
        return;
    }
    if (verb == "publish-long") return publish_long(words);
    if (verb == "lookup") return name(MessageKind::lookup, words);
    if (verb == "crash") {
        signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would turn the crash into an exit
        raise(SIGSEGV);
    }
    if (verb == "disconnect") {
        call(MessageKind::disconnect, encode(DisconnectNotice{child.header().id, own.header().id}));
        return;
    }
    std::getline(words >> std::ws, argument);
    if (verb == "print") {
        std::printf("%s\n", argument.c_str());
    } else if (verb == "sleep") {
        pause_ms(std::atol(argument.c_str()));
    } else if (verb == "await") {
        while (access(argument.c_str(), F_OK) != 0) pause_ms(5);
    } else if (verb == "pid") {
        FILE* file = std::fopen(argument.c_str(), "we");
        if (!file) fail_with(argument);
        std::fprintf(file, "%d\n", getpid());
        std::fclose(file);
    } else if (verb == "exit") {
        std::fflush(stdout);
        _exit(std::atoi(argument.c_str()));
    } else if (verb == "abort") {
        own.cell(own_rank).abort_code.store(std::atoi(argument.c_str()));
        own.cell(own_rank).aborted.store(1);
        std::fflush(stdout);
        _exit(std::atoi(argument.c_str()) & 0xff);
    } else {
        std::printf("probe: no such action: %s\n", action.c_str());
        _exit(98);
    }
}

}  // namespace

int main(int argc, char** argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    for (int i = 1; i < argc; ++i) act(argv[i]);
    return 0;
}
