#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "control/control_protocol.h"
#include "launch/client/debug_session.h"
#include "launch/client/options.h"
#include "launch/common/hosts.h"
#include "launch/universe/spawn_request.h"

namespace starling::launch {
namespace {

std::string parse(const std::vector<std::string>& arguments, Options& out) { return parse_options(arguments, out); }

Options good(const std::vector<std::string>& arguments) {
    Options options;
    EXPECT_EQ(parse(arguments, options), "");
    return options;
}

std::string bad(const std::vector<std::string>& arguments) {
    Options options;
    const std::string problem = parse(arguments, options);
    EXPECT_NE(problem, "");
    return problem;
}

bool mentions(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(Hosts, AnInvalidNameIsQuotedBriefly) {
    for (const std::string_view name : {std::string_view("a\0b", 3), std::string_view("-o"), std::string_view("a b"),
                                        std::string_view("a`b"), std::string_view()})
        EXPECT_FALSE(may_be_host(name)) << name;
    for (const char* name : {"lab1", "user@lab1", "10.0.0.1", "[::1]", "a-b_c.d"}) EXPECT_TRUE(may_be_host(name)) << name;
    char path[] = "/tmp/starling-tests-XXXXXX";
    const int fd = mkstemp(path);
    const std::string text = "lab1\n" + std::string(1, '\0') + "lab2 \033[31m" + std::string(100000, 'x') + "\n";
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
    std::vector<HostSlots> hosts;
    const std::string problem = read_hostfile(path, hosts);
    unlink(path);
    EXPECT_TRUE(mentions(problem, "line 2: '"));
    EXPECT_LT(problem.size(), 300u);
    EXPECT_EQ(problem.find('\033'), std::string::npos);
}

TEST(Options, EndAtTheProgram) {
    const Options options = good({"-n", "3", "./a", "-n", "7", "--tag-output", "--", "-x"});
    ASSERT_EQ(options.programs.size(), 1u);
    EXPECT_EQ(options.programs[0].count, 3u);
    EXPECT_EQ(options.programs[0].argv, (std::vector<std::string>{"./a", "-n", "7", "--tag-output", "--", "-x"}));
    EXPECT_FALSE(options.tag_output);
}

TEST(Options, TakeOneDashOrTwoAndAttachedValues) {
    for (const char* form : {"-n", "--n", "-np", "--np", "-c"}) EXPECT_EQ(good({form, "4", "a"}).programs[0].count, 4u) << form;
    EXPECT_EQ(good({"-np=4", "a"}).programs[0].count, 4u);
    EXPECT_EQ(good({"--timeout=9", "a"}).timeout_seconds, 9);
}

TEST(Options, TakeTheTimeLimitOfTheVariableThatOtherLaunchersHave) {
    ASSERT_EQ(setenv("MPIEXEC_TIMEOUT", "7", 1), 0);
    EXPECT_EQ(good({"a"}).timeout_seconds, 7);
    EXPECT_EQ(good({"--timeout", "9", "a"}).timeout_seconds, 9);
    ASSERT_EQ(setenv("MPIEXEC_TIMEOUT", "soon", 1), 0);
    EXPECT_TRUE(mentions(bad({"a"}), "MPIEXEC_TIMEOUT"));
    for (const char* none : {"", "0", "-1"}) {
        ASSERT_EQ(setenv("MPIEXEC_TIMEOUT", none, 1), 0);
        EXPECT_EQ(good({"a"}).timeout_seconds, 0) << none;
    }
    ASSERT_EQ(unsetenv("MPIEXEC_TIMEOUT"), 0);
}

TEST(Options, SeveralCommandsGetNumbersAndTheirOwnOptions) {
    const Options options = good({"-x", "G=1", "-n", "2", "-wdir", "/tmp", "a", "b", ":", "-n", "3", "-env", "L", "2", "c"});
    ASSERT_EQ(options.programs.size(), 2u);
    EXPECT_EQ(options.programs[0].appnum, 0);
    EXPECT_EQ(options.programs[1].appnum, 1);
    EXPECT_EQ(options.programs[0].directory, "/tmp");
    EXPECT_EQ(options.programs[1].directory, "");
    EXPECT_EQ(options.programs[0].environment.size(), 1u);
    EXPECT_EQ(options.programs[1].environment.size(), 2u);
    EXPECT_EQ(options.programs[1].environment[1].first, "L");
}

TEST(Options, ExportFromTheEnvironment) {
    setenv("LAUNCH_TEST_SET", "here", 1);
    EXPECT_EQ(good({"-x", "LAUNCH_TEST_SET", "a"}).programs[0].environment[0].second, "here");
    const Options without = good({"-x", "LAUNCH_TEST_UNSET", "-x", "LAUNCH_TEST_SET", "a"});
    EXPECT_EQ(without.programs[0].environment.size(), 1u);
    ASSERT_EQ(without.notes.size(), 1u);
    EXPECT_TRUE(mentions(without.notes[0], "'-x LAUNCH_TEST_UNSET' is ignored"));
    EXPECT_EQ(good({"-x", "A=b=c", "a"}).programs[0].environment[0].second, "b=c");
}

TEST(Options, SetIsAVariableOfStarling) {
    const auto environment = good({"--set", "single-copy=off", "--set", "STARLING_WAIT=poll", "a"}).programs[0].environment;
    EXPECT_EQ(environment[0].first, "STARLING_SINGLE_COPY");
    EXPECT_EQ(environment[0].second, "off");
    EXPECT_EQ(environment[1].first, "STARLING_WAIT");
}

TEST(Options, MistakesAreReported) {
    EXPECT_TRUE(mentions(bad({"--tag-ouput", "a"}), "--tag-output"));
    EXPECT_TRUE(mentions(bad({"--qwertyuiop", "a"}), "--qwertyuiop"));
    EXPECT_FALSE(mentions(bad({"--qwertyuiop", "a"}), "did you mean"));
    EXPECT_TRUE(mentions(bad({"-np2", "a"}), "unknown option '-np2'; did you mean '-np 2'?"));
    EXPECT_TRUE(mentions(bad({"-n", "0", "a"}), "number of processes"));
    EXPECT_TRUE(mentions(bad({"-n", "4x", "a"}), "4x"));
    EXPECT_TRUE(mentions(bad({"-n", "-4", "a"}), "-4"));
    EXPECT_TRUE(mentions(bad({"-n", "99999999999", "a"}), "number of processes"));
    EXPECT_TRUE(mentions(bad({"-n"}), "needs a value"));
    EXPECT_TRUE(mentions(bad({"-genv", "A"}), "two values"));
    EXPECT_TRUE(mentions(bad({"--tag-output=1", "a"}), "takes no value"));
    EXPECT_TRUE(mentions(bad({"--bind-to", "moon", "a"}), "auto, none, hwthread, core"));
    EXPECT_TRUE(mentions(bad({"--bind-to", "core:x", "a"}), "'x' is neither a number"));
    EXPECT_TRUE(mentions(bad({"--map-by", "slot:PE=0", "a"}), "PE=N"));
    EXPECT_TRUE(mentions(bad({"--map-by", "slot:PS=2", "a"}), "'PS=2' is not a modifier"));
    EXPECT_TRUE(mentions(bad({"--map-by", "ppr:2", "a"}), "ppr:N:part"));
    EXPECT_TRUE(mentions(bad({"--rank-by", "moon", "a"}), "moon"));
    EXPECT_TRUE(mentions(bad({"--cpu-list", "3-1", "a"}), "3-1"));
    EXPECT_TRUE(mentions(bad({"--bind-to", "none", "--map-by", ":PE=2", "a"}), "contradicts"));
    EXPECT_TRUE(mentions(bad({"--map-by", "seq", "-H", "a,b", "a"}), "--rankfile"));
    EXPECT_TRUE(mentions(bad({"--timeout", "soon", "a"}), "soon"));
    EXPECT_TRUE(mentions(bad({"--set", "progress", "a"}), "NAME=VALUE"));
    EXPECT_TRUE(mentions(bad({"--set", "single-cpoy=on", "a"}), "STARLING_SINGLE_COPY"));
    bad({});
    bad({"-n", "4"});
    bad({"a", ":"});
    bad({":", "a"});
    bad({"a", ":", ":", "b"});
    bad({""});
}

// Returns the placement that the launchers of the hosts are asked for; empty: none.
std::string placement_of(const std::vector<std::string>& options, Binding binding = Binding::none) {
    std::vector<std::string> arguments = options;
    arguments.emplace_back("a");
    const Options parsed = good(arguments);
    EXPECT_EQ(parsed.binding, binding);
    for (const auto& [name, value] : parsed.programs[0].environment)
        if (name == "STARLING_PROCESSORS") return value;
    return {};
}

TEST(Options, PlacementWithinAHostIsPassedToItsLauncher) {
    EXPECT_EQ(placement_of({}, Binding::automatic), "");
    EXPECT_EQ(placement_of({"--bind-to", "core"}, Binding::core), "");
    EXPECT_EQ(placement_of({"--bind-to", "none"}), "");
    EXPECT_EQ(placement_of({"--map-by", "core"}, Binding::automatic), "");
    EXPECT_EQ(placement_of({"--map-by", "slot:PE=2", "--bind-to", "core"}), "bind=core;elements=2");
    EXPECT_EQ(placement_of({"--bind-to", "core", "--map-by", "slot:PE=2,HWTCPUS"}), "bind=core;elements=2;hwthreads=1");
    EXPECT_EQ(placement_of({"--map-by", ":pe=3"}), "elements=3");
    EXPECT_EQ(placement_of({"--bind-to", "socket"}), "bind=package");
    EXPECT_EQ(placement_of({"--bind-to", "NUMA:2"}), "bind=numa;bind-count=2");
    EXPECT_EQ(placement_of({"--bind-to", "core:overload-allowed"}, Binding::core), "");
    EXPECT_EQ(placement_of({"--map-by", "socket"}), "map=package");
    EXPECT_EQ(placement_of({"--map-by", "l3cache", "--bind-to", "core"}), "bind=core;map=l3cache");
    EXPECT_EQ(placement_of({"--bind-to", "hw", "--rank-by", "socket"}), "bind=hwthread;rank=package");
    EXPECT_EQ(placement_of({"--cpu-list", "0-2,8"}), "cpus=0-2,8");
    EXPECT_EQ(placement_of({"--cpu-set", "4", "--bind-to", "core"}), "bind=core;cpus=4");
    EXPECT_EQ(placement_of({"-bind-to", "user:0+2,1"}), "lists=0,2/1");
    const std::string per_package = placement_of({"--map-by", "ppr:2:package:PE=1"});
    EXPECT_EQ(per_package, "map=package;per-part=2;elements=1");
    EXPECT_GE(good({"--map-by", "ppr:2:package", "a"}).programs[0].per_host, 2u);
    EXPECT_EQ(good({"--map-by", "ppr:3:node", "a"}).programs[0].per_host, 3u);
}

TEST(Options, RanksMayBeNumberedOtherwiseThanPlaced) {
    EXPECT_EQ(good({"--map-by", "node", "--rank-by", "slot", "a"}).programs[0].mapping, Mapping::node_ranked_by_slot);
    EXPECT_EQ(good({"--rank-by", "node", "a"}).programs[0].mapping, Mapping::slot_ranked_by_node);
    EXPECT_EQ(good({"--map-by", "node", "--rank-by", "node", "a"}).programs[0].mapping, Mapping::node);
    EXPECT_EQ(good({"--rank-by", "slot", "a"}).programs[0].mapping, Mapping::slot);
}

TEST(Options, VariablesOfOneCommandOrAllButSome) {
    setenv("LAUNCH_TEST_SET", "here", 1);
    EXPECT_EQ(good({"-genv", "A=b=c", "a"}).programs[0].environment[0], (std::pair<std::string, std::string>("A", "b=c")));
    EXPECT_EQ(good({"-env", "A", "b=c", "a"}).programs[0].environment[0].second, "b=c");
    const Options list = good({"-envlist", "LAUNCH_TEST_SET,LAUNCH_TEST_UNSET", "a", ":", "b"});
    EXPECT_EQ(list.programs[0].forward, Forward::none);
    EXPECT_EQ(list.programs[0].environment.size(), 1u);
    EXPECT_EQ(list.programs[1].forward, Forward::usual);
    const Options others = good({"-genvexcl", "LAUNCH_TEST_SET", "a"});
    EXPECT_EQ(others.programs[0].forward, Forward::none);
    bool path = false;
    for (const auto& [name, value] : others.programs[0].environment) {
        EXPECT_NE(name, "LAUNCH_TEST_SET");
        path |= name == "PATH";
    }
    EXPECT_TRUE(path);
}

TEST(Options, LauncherForkMeansThisHost) {
    EXPECT_EQ(good({"-launcher", "fork", "a"}).way, LaunchMethod::direct);
    EXPECT_TRUE(mentions(bad({"-launcher", "lsf", "a"}), "--launcher-agent"));
    EXPECT_TRUE(good({"--display", "map,bind", "a"}).display_map);
    EXPECT_TRUE(good({"--display", "map,bind", "a"}).report_bindings);
}

TEST(Options, DebugMeansThisHostAndKeepsTheNameOfTheProgram) {
    Options options = good({"--debug", "-n", "2", "/bin/ls", "x", ":", "sh"});
    EXPECT_EQ(options.way, LaunchMethod::direct) << "before a batch job's hosts are looked up";
    EXPECT_EQ(good({"-n", "2", "prog"}).way, LaunchMethod::automatic);
    EXPECT_EQ(options.programs[0].command(), "/bin/ls");
    EXPECT_EQ(hold_debugged(options), "");
    EXPECT_EQ(options.programs[0].argv[0], "/bin/sh");
    EXPECT_EQ(options.programs[0].command(), "/bin/ls");
    EXPECT_EQ(options.programs[1].command(), "sh");
}

TEST(Options, DebugFindsMissingProgramsBeforeTheDebuggerStarts) {
    Options options = good({"--debug", "dir/missing"});
    EXPECT_TRUE(mentions(hold_debugged(options), "cannot start 'dir/missing'"));
    EXPECT_EQ(options.programs[0].argv[0], "dir/missing");
    Options second = good({"--debug", "sh", ":", "--path", "/no/directory", "missing"});
    EXPECT_TRUE(mentions(hold_debugged(second), "neither in PATH"));
}

TEST(Options, AValueWithoutEqualsIsTakenAsTheProgram) {
    EXPECT_EQ(good({"--profile", "file", "-n", "2", "prog"}).start_hint,
              "; '--profile' takes a value only as '--profile=VALUE', so 'file' was taken as the program");
    EXPECT_EQ(good({"--profile=file", "prog"}).start_hint, "");
    EXPECT_EQ(good({"--profile", "-n", "2", "prog"}).start_hint, "");
    EXPECT_EQ(good({"--profile", "--", "prog"}).start_hint, "");
}

TEST(Options, TheHintIsOnlyForTheProgramThatDoesNotStart) {
    const Options options = good({"--profile", "file", ":", "prog"});
    const std::string failure = "cannot start 'file' in directory '/': No such file or directory";
    EXPECT_EQ(options.with_start_hint(failure, 0), failure + options.start_hint);
    for (const size_t other : {1, 2}) EXPECT_EQ(options.with_start_hint(failure, other), failure);
}

TEST(Options, UnneededOptionsOfOtherLaunchersAreAccepted) {
    EXPECT_TRUE(good({"--oversubscribe", "--allow-run-as-root", "a"}).notes.empty());
    EXPECT_EQ(good({"a"}).universe_size, 0u);
    EXPECT_EQ(good({"-usize", "12", "a"}).universe_size, 12u);
    EXPECT_EQ(good({"-usize", "SYSTEM", "a"}).universe_size, 0u);
    EXPECT_EQ(good({"--usize", "INFINITE", "a"}).universe_size, kInfiniteUniverse);
    EXPECT_EQ(good({"--mca", "btl", "tcp", "--map-by", "slot:SPAN", "a"}).notes.size(), 2u);
}

TEST(Options, HostsBelongToTheirCommand) {
    const Options options = good({"-H", "a:2,b", "-npernode", "2", "x", ":", "--map-by", "node", "-n", "3", "y"});
    EXPECT_EQ(options.programs[0].hosts, (std::vector<HostSlots>{{"a", 2}, {"b", 0}}));
    EXPECT_EQ(options.programs[0].per_host, 2u);
    EXPECT_TRUE(options.programs[0].uncounted) << "the root knows how many hosts there are";
    EXPECT_FALSE(options.programs[1].uncounted);
    EXPECT_EQ(good({"-H", "a,b:2", "x"}).programs[0].hosts, (std::vector<HostSlots>{{"a", 1}, {"b", 2}}));
    EXPECT_EQ(good({"-H", "a,b:2", "-n", "5", "x"}).programs[0].hosts, (std::vector<HostSlots>{{"a", 0}, {"b", 2}}));
    EXPECT_TRUE(options.programs[1].hosts.empty());
    EXPECT_EQ(options.programs[1].mapping, Mapping::node);
    EXPECT_TRUE(mentions(bad({"--map-by", "moon", "a"}), "moon"));
    EXPECT_TRUE(mentions(bad({"-ppn", "0", "a"}), "-ppn"));
}

TEST(Options, TheAgentOptionHasManyNames) {
    for (const char* name : {"--launcher-agent", "-launcher-exec", "-bootstrap-exec"})
        EXPECT_EQ(good({name, "my agent", "a"}).agent, "my agent") << name;
    EXPECT_EQ(good({"--mca", "plm_rsh_agent", "other", "a"}).agent, "other");
    EXPECT_TRUE(mentions(bad({"-launcher", "carrier-pigeon", "a"}), "--launcher-agent"));
    EXPECT_EQ(good({"--via", "daemons", "a"}).way, LaunchMethod::standing);
    EXPECT_TRUE(mentions(bad({"--via", "sea", "a"}), "daemons"));
}

TEST(Hosts, AreReadWithTheirSlots) {
    std::vector<HostSlots> hosts;
    EXPECT_EQ(read_hosts("a,b:4,10.0.0.1:2,[fe80::1]:3,fe80::2,a", hosts), "");
    EXPECT_EQ(hosts, (std::vector<HostSlots>{{"a", 2}, {"b", 4}, {"10.0.0.1", 2}, {"[fe80::1]", 3}, {"fe80::2", 0}}));
    for (const char* wrong : {"", "a,,", "a:", "a:x", "a:1000001", "-oProxyCommand=x", "a;b", "a b"})
        EXPECT_NE(read_hosts(wrong, hosts), "") << wrong;
    EXPECT_TRUE(mentions(read_hosts("good,wr!ong:2", hosts), "'wr!ong:2'"));
    hosts.clear();
    EXPECT_EQ(read_hosts("head:0,a:2", hosts), "");
    EXPECT_EQ(hosts, (std::vector<HostSlots>{{"a", 2}}));
    hosts.clear();
    EXPECT_TRUE(mentions(read_hosts("head:0", hosts), "'head:0' has 0 slots"));
}

TEST(Hosts, ThisMachineHasManyNames) {
    EXPECT_TRUE(is_this_machine("localhost") && is_this_machine("LocalHost"));
    EXPECT_TRUE(is_this_machine("127.0.0.1"));
    EXPECT_TRUE(is_this_machine(host_name()));
    EXPECT_FALSE(is_this_machine("elsewhere"));
    EXPECT_FALSE(is_this_machine("192.0.2.1"));
    EXPECT_TRUE(same_host("node1", "NODE1.example"));
    EXPECT_TRUE(same_host("localhost", host_name()));
    EXPECT_FALSE(same_host("node1.a.example", "node1.b.example"));
    EXPECT_FALSE(same_host("10.0.0.1", "10.0.0.2"));
}

class HostfileTest : public ::testing::Test {
  protected:
    void SetUp() override {
        const int fd = mkstemp(path_);
        ASSERT_GE(fd, 0);
        close(fd);
    }
    void TearDown() override { unlink(path_); }
    std::string check(const char* content) {
        FILE* file = std::fopen(path_, "w");
        std::fputs(content, file);
        std::fclose(file);
        hosts_.clear();
        notes_.clear();
        return read_hostfile(path_, hosts_, &notes_);
    }
    std::vector<std::string> notes_;
    std::vector<HostSlots> hosts_;
    char path_[64] = "/tmp/options-hostfile-XXXXXX";
};

TEST_F(HostfileTest, KnowsTheUsualForms) {
    EXPECT_EQ(check("# all here\n\nnode1 slots=4 max_slots=8\n  node2:2\r\nnode3 # one\n"), "");
    EXPECT_EQ(hosts_, (std::vector<HostSlots>{{"node1", 4}, {"node2", 2}, {"node3", 0}}));
    EXPECT_EQ(check("a\na\nb\na\n"), "");
    EXPECT_EQ(hosts_, (std::vector<HostSlots>{{"a", 3}, {"b", 0}}));
}

TEST_F(HostfileTest, KnowsTheFormsOfOtherLaunchers) {
    EXPECT_EQ(check("a slots = 2 max-slots =4\nb cpus= 3 slots_max=3\nc:5 count=6\nd user=me slots=1\n"), "");
    EXPECT_EQ(hosts_, (std::vector<HostSlots>{{"a", 2}, {"b", 3}, {"c", 6}, {"me@d", 1}}));
    EXPECT_TRUE(notes_.empty()) << "no job is refused for the number of its processes, so a maximum changes nothing";
    EXPECT_EQ(check("a:2 binding=user:0,1 ifhn=ib0\nb:1 ifhn=ib1\n"), "");
    EXPECT_EQ(hosts_, (std::vector<HostSlots>{{"a", 2}, {"b", 1}}));
    ASSERT_EQ(notes_.size(), 2u);
    EXPECT_TRUE(mentions(notes_[0], "binding= in the hostfile is ignored: --bind-to"));
    EXPECT_TRUE(mentions(notes_[1], "STARLING_IP_INTERFACES"));
}

TEST_F(HostfileTest, AHostWithoutSlotsIsNotUsed) {
    EXPECT_EQ(check("head slots=0\na slots=2\nother:0\n"), "");
    EXPECT_EQ(hosts_, (std::vector<HostSlots>{{"a", 2}}));
    EXPECT_TRUE(mentions(check("head slots=0\n"), "has 0 slots"));
}

TEST_F(HostfileTest, AnUnknownWordIsAnErrorWithItsLine) {
    EXPECT_TRUE(mentions(check("a\nb slot=4\n"), ", line 2: 'slot=4' is not known here; did you mean slots=...?"));
    EXPECT_TRUE(
        mentions(check("a foo=8\n"), ", line 1: 'foo=8' is not known here; a line is NAME, NAME:SLOTS or NAME slots=SLOTS"));
    EXPECT_TRUE(mentions(check("a 8\n"), "'8' is not known here"));
    EXPECT_TRUE(mentions(check("a slots=\n"), "does not name a number of processes"));
    EXPECT_TRUE(mentions(check("a user=-x\n"), "is not the name of a user"));
}

TEST_F(HostfileTest, NamesFileAndLine) {
    const std::string other = check("localhost\nnode17 slots=many\n");
    EXPECT_TRUE(mentions(other, path_));
    EXPECT_TRUE(mentions(other, "line 2"));
    EXPECT_TRUE(mentions(other, "'slots=many'"));
    EXPECT_TRUE(mentions(check("{\"hosts\": 1}\n"), "line 1"));
    EXPECT_TRUE(mentions(check("# nothing\n"), "names no host"));
    EXPECT_TRUE(mentions(read_hostfile("/no/such/file", hosts_), "/no/such/file"));
    EXPECT_NE(read_hostfile("/", hosts_), "");
}

TEST(Soft, ReadsNumbersAndRanges) {
    std::vector<uint32_t> counts;
    ASSERT_TRUE(parse_soft("1,4:6", 10, counts));
    EXPECT_EQ(counts, (std::vector<uint32_t>{1, 4, 5, 6}));
    counts.clear();
    ASSERT_TRUE(parse_soft("0:10:3, 2", 7, counts));
    EXPECT_EQ(counts, (std::vector<uint32_t>{0, 2, 3, 6}));
    counts.clear();
    ASSERT_TRUE(parse_soft("1:4294967295", 3, counts));
    EXPECT_EQ(counts.size(), 3u);
    for (const char* text : {"", "a", "1:", "1:2:0", "1,", "1;2", "-1"}) EXPECT_FALSE(parse_soft(text, 5, counts)) << text;
}

TEST(SpawnRequest, BecomesAJob) {
    control::SpawnRequest request;
    request.blob = "b";
    request.commands.push_back({{"a", "1"}, 2, {{"wdir", "/tmp"}, {"env", "A=1\nB=2"}, {"unknown", "x"}}});
    request.commands.push_back({{"b"}, 3, {{"path", "/opt/bin"}}});
    JobSpec spec;
    ASSERT_EQ(job_of(request, 5, spec), "");
    EXPECT_EQ(spec.parent, 5u);
    ASSERT_EQ(spec.programs.size(), 2u);
    EXPECT_EQ(spec.programs[0].directory, "/tmp");
    EXPECT_EQ(spec.programs[0].environment.size(), 2u);
    EXPECT_EQ(spec.programs[1].appnum, 1);
    EXPECT_EQ(spec.programs[1].search_path, "/opt/bin");
}

TEST(SpawnRequest, RefusesImpossibleRequests) {
    JobSpec spec;
    EXPECT_NE(job_of({}, 1, spec), "");
    EXPECT_NE(job_of({"", {{{}, 1, {}}}}, 1, spec), "");
    EXPECT_NE(job_of({"", {{{""}, 1, {}}}}, 1, spec), "");
    EXPECT_TRUE(mentions(job_of({"", {{{"a"}, 1, {{"host", "far"}}}}}, 1, spec), "'far'"));
    EXPECT_TRUE(mentions(job_of({"", {{{"a"}, 1, {{"soft", "some"}}}}}, 1, spec), "some"));
    EXPECT_TRUE(mentions(job_of({"", {{{"a"}, 1, {{"env", "A"}}}}}, 1, spec), "'A'"));
}

}  // namespace
}  // namespace starling::launch
