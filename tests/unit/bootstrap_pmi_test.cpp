// Conversations with a scripted PMI manager whose replies are correct, wrong in one line (each in turn), or cut short.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "bootstrap/manager.h"
#include "bootstrap/pmi_wire.h"
#include "mpi.h"

namespace starling::bootstrap {
namespace {

using pmi::Decoder;
using pmi::PmiMessage;
using pmi::PmiVersion;

/// A message that the manager expects and its reply, both in the syntax of the PMI version in use. Empty: no reply. "HANG UP" closes the
/// socket.
struct Line {
    const char* expected;
    std::string answer;
};
using Script = std::vector<Line>;

/// Plays a script as the manager, on its end of a socket pair.
class Server {
  public:
    explicit Server(Script script) : script_(std::move(script)) {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        fd_ = ends[0];
        setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
        setenv("PMI_RANK", "1", 1);
        setenv("PMI_SIZE", "4", 1);
        thread_ = std::thread([this] { play(); });
    }
    ~Server() {
        thread_.join();
        close(fd_);
        for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
    }
    size_t played = 0;

  private:
    void play() {
        Decoder decoder;
        PmiVersion version = PmiVersion::one;
        for (const Line& line : script_) {
            PmiMessage message;
            while (decoder.next(message) != Decoder::PmiReadResult::message) {
                char buffer[4096];
                const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
                if (got <= 0) return;
                decoder.feed({buffer, static_cast<size_t>(got)});
            }
            EXPECT_EQ(message.command(), line.expected);
            ++played;
            if (line.answer == "HANG UP") break;
            std::string answer = line.answer;
            if (version == PmiVersion::two && answer.starts_with("cmd=")) {
                std::string length = std::to_string(answer.size());
                length.resize(6, ' ');
                answer = length + answer;
            }
            if (send(fd_, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
            if (answer.find("pmi_version=2") != std::string::npos && answer.find("rc=0") != std::string::npos) {
                version = PmiVersion::two;
                decoder.set_version(version);
            }
        }
        shutdown(fd_, SHUT_RDWR);
    }

    int fd_;
    Script script_;
    std::thread thread_;
};

Script script_one() {
    return {{"init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"},
            {"get_my_kvsname", "cmd=my_kvsname kvsname=kvs_7_0\n"},
            {"get_appnum", "cmd=appnum appnum=2\n"},
            {"get_universe_size", "cmd=universe_size size=16 rc=0\n"},
            {"get", "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n"},
            {"put", "cmd=put_result rc=0 msg=success\n"},
            {"barrier_in", "cmd=barrier_out rc=0\n"},
            {"get", "cmd=get_result rc=0 msg=success value=there\n"},
            {"get", "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"},
            {"finalize", "cmd=finalize_ack\n"}};
}

Script script_two() {
    return {{"init", "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"},
            {"fullinit", "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=1;size=4;appnum=2;rc=0;"},
            {"job-getid", "cmd=job-getid-response;jobid=12.0;rc=0;"},
            {"info-getjobattr", "cmd=info-getjobattr-response;found=TRUE;value=16;rc=0;"},
            {"info-getjobattr", "cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,2,2));rc=0;"},
            {"kvs-put", "cmd=kvs-put-response;rc=0;"},
            {"kvs-fence", "cmd=kvs-fence-response;rc=0;"},
            {"kvs-get", "cmd=kvs-get-response;found=TRUE;value=there;rc=0;"},
            {"kvs-get", "cmd=kvs-get-response;found=FALSE;rc=0;"},
            {"finalize", "cmd=finalize-response;rc=0;"}};
}

constexpr size_t kFactsOne = 5;  ///< number of script lines that start() consumes
constexpr size_t kFactsTwo = 5;

struct Finding {
    std::string value = "(not called)";
    uint32_t rank = ~0u;
    LookupOutcome outcome = LookupOutcome::too_early;
};

void note(void* context, uint32_t rank, LookupOutcome outcome, std::string_view value) {
    *static_cast<Finding*>(context) = {std::string(value), rank, outcome};
}

int look_up(Manager& manager, uint32_t rank, Finding& finding) {
    bool asked = false;
    int error = MPI_SUCCESS;
    while (!asked && !error) error = manager.lookup(rank, "port", note, &finding, asked);
    return error;
}

/// The whole conversation of a process with its manager; the first error ends it.
int converse(Manager& manager, ManagedJob& job) {
    if (const int error = manager.start(job)) return error;
    if (const int error = manager.put("port", "mine")) return error;
    if (const int error = manager.publish()) return error;
    Finding finding;
    if (const int error = look_up(manager, 3, finding)) return error;
    EXPECT_EQ(finding.value, "there");
    EXPECT_EQ(finding.rank, 3u);
    EXPECT_EQ(finding.outcome, LookupOutcome::found);
    if (const int error = look_up(manager, 2, finding)) return error;
    EXPECT_EQ(finding.outcome, LookupOutcome::nothing);
    return manager.leave();
}

void expect_facts(const ManagedJob& job, const char* name) {
    EXPECT_EQ(job.name, name);
    EXPECT_EQ(job.rank, 1u);
    EXPECT_EQ(job.size, 4u);
    EXPECT_EQ(job.appnum, 2u);
    EXPECT_EQ(job.universe_size, 16u);
    EXPECT_EQ(job.hosts.size(), 2u);
    EXPECT_EQ(job.placements, (std::vector<job::Placement>{{0, 1, 2, 0, 0}, {2, 1, 2, 1, 0}}));
}

TEST(PmiManager, VersionOneFromHelloToGoodbye) {
    Server server(script_one());
    const auto manager = make_pmi_manager(1, true);
    ManagedJob job;
    EXPECT_EQ(converse(*manager, job), MPI_SUCCESS) << failure_text();
    expect_facts(job, "kvs_7_0");
    EXPECT_STREQ(manager->protocol(), "PMI-1");
}

TEST(PmiManager, VersionTwoFromHelloToGoodbye) {
    Server server(script_two());
    const auto manager = make_pmi_manager(2, false);
    ManagedJob job;
    EXPECT_EQ(converse(*manager, job), MPI_SUCCESS) << failure_text();
    expect_facts(job, "12.0");
    EXPECT_STREQ(manager->protocol(), "PMI-2");
}

TEST(PmiManager, VersionOneIsTriedIfTwoIsRefused) {
    Script script = script_one();
    script.insert(script.begin(), {"init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"});
    Server server(script);
    const auto manager = make_pmi_manager(2, false);
    ManagedJob job;
    EXPECT_EQ(converse(*manager, job), MPI_SUCCESS) << failure_text();
    EXPECT_STREQ(manager->protocol(), "PMI-1");
}

TEST(PmiManager, ARequestedVersionIsTheOnlyOneTried) {
    Server server(Script{{"init", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n"}});
    ManagedJob job;
    EXPECT_EQ(make_pmi_manager(2, true)->start(job), MPI_ERR_OTHER);
    EXPECT_NE(failure_text().find("requested versions of PMI"), std::string_view::npos) << failure_text();
}

TEST(PmiManager, WithoutAManagerThereIsNoConversation) {
    Server server({{"init", "cmd=response_to_init pmi_version=3 rc=0\n"}, {"init", "cmd=response_to_init rc=-1\n"}});
    ManagedJob job;
    EXPECT_EQ(make_pmi_manager(2, false)->start(job), MPI_ERR_OTHER);
    EXPECT_NE(failure_text().find("requested versions of PMI"), std::string_view::npos) << failure_text();
}

// Plays the script with `answer` at line `at`. The conversation must end in time, with an error and its text.
void expect_failure(Script script, size_t at, const std::string& answer, int version) {
    script[at].answer = answer;
    Server server(script);
    clear_failure();
    ManagedJob job;
    const auto manager = make_pmi_manager(version, true);
    EXPECT_NE(converse(*manager, job), MPI_SUCCESS) << "line " << at << ": " << answer;
    EXPECT_FALSE(failure_text().empty());
}

TEST(PmiManager, AWrongAnswerAnywhereIsAnErrorWithoutAHang) {
    std::string very_long(100000, '\xff');
    very_long += '\n';
    for (const int version : {1, 2}) {
        const Script script = version == 1 ? script_one() : script_two();
        for (size_t at = 0; at < script.size(); ++at) {
            const bool framed = version == 2 && at > 0;
            expect_failure(script, at, "HANG UP", version);
            expect_failure(script, at, framed ? "cmd=something-else;rc=0;" : "cmd=something_else rc=0\n", version);
            expect_failure(script, at, framed ? "abcdef" : "no message at all\n", version);
            expect_failure(script, at, framed ? "12    cmd=x;novalue" : "\n", version);
            expect_failure(script, at, very_long, version);
        }
    }
}

TEST(PmiManager, RefusalsAreErrors) {
    expect_failure(script_one(), 1, "cmd=my_kvsname\n", 1);               // a reply without a name
    expect_failure(script_one(), 4, "cmd=get_result rc=-1 msg=no\n", 1);  // a reply without the mapping of processes to hosts
    expect_failure(script_one(), 4, "cmd=get_result rc=0 value=(vector,(0,1)\n", 1);
    expect_failure(script_one(), 5, "cmd=put_result rc=-1 msg=full\n", 1);
    expect_failure(script_one(), 6, "cmd=barrier_out rc=-1\n", 1);
    expect_failure(script_two(), 1, "cmd=fullinit-response;rc=14;", 2);
    expect_failure(script_two(), 2, "cmd=job-getid-response;rc=0;", 2);
    expect_failure(script_two(), 4, "cmd=info-getjobattr-response;found=FALSE;rc=0;", 2);
    expect_failure(script_two(), 5, "cmd=kvs-put-response;rc=3;", 2);
    expect_failure(script_two(), 6, "cmd=kvs-fence-response;rc=3;", 2);
}

TEST(PmiManager, OptionalFactsMayBeMissing) {
    Script script = script_two();
    script[3].answer = "cmd=info-getjobattr-response;found=FALSE;rc=0;";
    script[1].answer = "cmd=fullinit-response;rc=0;";
    Server server(script);
    ManagedJob job;
    const auto manager = make_pmi_manager(2, false);
    EXPECT_EQ(converse(*manager, job), MPI_SUCCESS) << failure_text();
    EXPECT_EQ(job.universe_size, 0u);
    EXPECT_EQ(job.appnum, 0u);
}

TEST(PmiManager, ALookUpDoesNotWaitForABarrier) {
    for (const int version : {1, 2}) {
        Script script = version == 1 ? script_one() : script_two();
        script.resize(7);
        script[6].answer = "";  // the other ranks have not reached the barrier
        Server server(script);
        ManagedJob job;
        const auto manager = make_pmi_manager(version, true);
        ASSERT_EQ(manager->start(job), MPI_SUCCESS);
        ASSERT_EQ(manager->put("port", "mine"), MPI_SUCCESS);
        ASSERT_EQ(manager->publish(), MPI_SUCCESS);
        Finding finding;
        bool asked = true;
        const int error = manager->lookup(3, "port", note, &finding, asked);
        // The script may have ended: then the manager has closed the connection. Otherwise it has not replied yet.
        EXPECT_FALSE(!error && asked);
        EXPECT_EQ(finding.value, "(not called)");
    }
}

TEST(PmiManager, AnAbortIsSentWithoutWaitingForAnAnswer) {
    Script script = script_one();
    script.resize(kFactsOne);
    script.push_back({"abort", ""});
    Server server(script);
    ManagedJob job;
    const auto manager = make_pmi_manager(1, true);
    ASSERT_EQ(manager->start(job), MPI_SUCCESS);
    manager->abort(3, "text");
}

TEST(PmiManager, AnAbortInVersionTwoMayHaveBlanksInItsText) {
    Script script = script_two();
    script.resize(kFactsTwo);
    script.push_back({"abort", ""});
    Server server(script);
    ManagedJob job;
    const auto manager = make_pmi_manager(2, false);
    ASSERT_EQ(manager->start(job), MPI_SUCCESS);
    manager->abort(3, "a text; with everything");
}

void expect_bad_environment(const char* fd, const char* rank, const char* size) {
    setenv("PMI_FD", fd, 1);
    setenv("PMI_RANK", rank, 1);
    setenv("PMI_SIZE", size, 1);
    ManagedJob job;
    clear_failure();
    EXPECT_NE(make_pmi_manager(2, false)->start(job), MPI_SUCCESS) << fd << " " << rank << " " << size;
    EXPECT_FALSE(failure_text().empty());
    for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
}

TEST(PmiManager, AnInconsistentEnvironmentIsAnError) {
    expect_bad_environment("x", "0", "1");
    expect_bad_environment("-1", "0", "1");
    expect_bad_environment("99999999999", "0", "1");
    expect_bad_environment("1000", "0", "1");  // closed
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const std::string fd = std::to_string(ends[0]);
    expect_bad_environment(fd.c_str(), "4", "4");
    EXPECT_GE(fcntl(ends[0], F_GETFD), -1);
    close(ends[1]);
    int file = open("/dev/null", O_RDWR);
    expect_bad_environment(std::to_string(file).c_str(), "0", "1");
    EXPECT_GE(fcntl(file, F_GETFD), 0) << "a descriptor that does not belong to a manager stays open";
    close(file);
}

}  // namespace
}  // namespace starling::bootstrap
