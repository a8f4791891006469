// The syntax of other process managers' messages, and errors in it.
#include <gtest/gtest.h>

#include <string>

#include "base/version.h"
#include "bootstrap/host_join.h"
#include "bootstrap/host_record.h"
#include "bootstrap/pmi_wire.h"
#include "bootstrap/pmix_hosts.h"
#include "bootstrap/process_mapping.h"

namespace starling::bootstrap {
namespace {

using pmi::Decoder;
using pmi::PmiMessage;
using pmi::PmiVersion;

PmiMessage decode_all(PmiVersion version, std::string_view bytes,
                      Decoder::PmiReadResult expected = Decoder::PmiReadResult::message) {
    Decoder decoder;
    decoder.set_version(version);
    decoder.feed(bytes);
    PmiMessage message;
    EXPECT_EQ(decoder.next(message), expected) << bytes;
    return message;
}

TEST(PmiWire, LinesAreSplitAtBlanks) {
    const PmiMessage message = decode_all(PmiVersion::one, "cmd=get_result rc=0  msg=success value=a=b\n");
    EXPECT_EQ(message.command(), "get_result");
    EXPECT_EQ(message.get("value"), "a=b");
    int rc = -1;
    EXPECT_TRUE(message.number("rc", rc));
    EXPECT_EQ(rc, 0);
    EXPECT_FALSE(message.number("value", rc));
    EXPECT_FALSE(message.number("nothing", rc));
    EXPECT_FALSE(message.has("nothing"));
}

TEST(PmiWire, WordsAfterAnAttributesValueAreNotAttributes) {
    EXPECT_EQ(decode_all(PmiVersion::one, "cmd=get_result rc=-1 msg=key not found\n").get("msg"), "key");
}

TEST(PmiWire, BodiesHaveALengthAndDoubledSemicolons) {
    const PmiMessage message = decode_all(PmiVersion::two, "28    cmd=x-response;value=a;;b;;;");
    EXPECT_EQ(message.command(), "x-response");
    EXPECT_EQ(message.get("value"), "a;b;");
    EXPECT_EQ(decode_all(PmiVersion::two, "     8cmd=x;z=").get("z"), "") << "blanks before the digits";
}

TEST(PmiWire, MessagesSurviveEncodingAndDecoding) {
    for (const PmiVersion version : {PmiVersion::one, PmiVersion::two}) {
        PmiMessage message("kvs-put");
        message.set("key", "k").set("value", version == PmiVersion::two ? "blank ; semicolon;" : "plain").set("n", -3);
        EXPECT_EQ(decode_all(version, encode(version, message)), message);
    }
}

TEST(PmiWire, ValuesThatALineCannotCarryAreNotSent) {
    EXPECT_EQ(encode(PmiVersion::one, PmiMessage("put").set("value", "two words")), "");
    EXPECT_EQ(encode(PmiVersion::one, PmiMessage("put").set("value", "two\nlines")), "");
    EXPECT_EQ(encode(PmiVersion::two, PmiMessage("put").set("value", std::string(pmi::kMostBody, 'x'))), "");
}

TEST(PmiWire, BytesMayArriveOneByOne) {
    for (const PmiVersion version : {PmiVersion::one, PmiVersion::two}) {
        const std::string bytes = encode(version, PmiMessage("a").set("b", "c")) + encode(version, PmiMessage("d"));
        Decoder decoder;
        decoder.set_version(version);
        std::vector<std::string> commands;
        for (const char c : bytes) {
            PmiMessage message;
            decoder.feed({&c, 1});
            while (decoder.next(message) == Decoder::PmiReadResult::message) commands.emplace_back(message.command());
        }
        EXPECT_EQ(commands, (std::vector<std::string>{"a", "d"}));
    }
}

TEST(PmiWire, GarbageEndsDecoding) {
    for (const char* bytes : {"\n", "rc=0\n", "hello world\n", "=x cmd=y\n"}) {
        Decoder decoder;
        decoder.feed(bytes);
        PmiMessage message;
        EXPECT_EQ(decoder.next(message), Decoder::PmiReadResult::garbage) << bytes;
        decoder.feed("cmd=init\n");
        EXPECT_EQ(decoder.next(message), Decoder::PmiReadResult::garbage) << bytes;
    }
    for (const char* bytes : {"      cmd=x;", "12a   cmd=x;", "-5    cmd=x;", "4     rc=0", "5     cmd=;", "3     ;;;"})
        decode_all(PmiVersion::two, bytes, Decoder::PmiReadResult::garbage);
    decode_all(PmiVersion::one, std::string(pmi::kMostLine + 1, 'x'), Decoder::PmiReadResult::garbage);
    decode_all(PmiVersion::two, "999999cmd=x;", Decoder::PmiReadResult::need_more);
}

std::vector<uint32_t> hosts_of(std::string_view mapping, uint32_t size) {
    std::vector<job::Placement> runs;
    uint32_t hosts;
    if (!parse_process_mapping(mapping, size, runs, hosts)) return {};
    std::vector<uint32_t> out(size, ~0u);
    for (const job::Placement& run : runs)
        for (uint32_t i = 0; i < run.count; ++i) out[run.first + i * run.stride] = run.host;
    return out;
}

using Hosts = std::vector<uint32_t>;

TEST(ProcessMapping, BlocksArePlacedInTurnUntilAllAre) {
    EXPECT_EQ(hosts_of("(vector,(0,1,4))", 4), (Hosts{0, 0, 0, 0}));
    EXPECT_EQ(hosts_of("(vector,(0,2,2))", 4), (Hosts{0, 0, 1, 1}));
    EXPECT_EQ(hosts_of("(vector,(0,2,1))", 5), (Hosts{0, 1, 0, 1, 0})) << "the ranks are placed on the hosts in rotation";
    EXPECT_EQ(hosts_of("(vector,(0,2,2),(2,1,1))", 5), (Hosts{0, 0, 1, 1, 2}));
    EXPECT_EQ(hosts_of(" ( vector , ( 0 , 1 , 9 ) )", 2), (Hosts{0, 0}));
    EXPECT_EQ(hosts_of("(vector,(7,2,1))", 2), (Hosts{0, 1})) << "hosts are numbered in order of appearance";
    EXPECT_EQ(hosts_of("(vector,(0,0,3),(1,1,1))", 2), (Hosts{0, 0}));
}

TEST(ProcessMapping, MalformedMappingsAreRefused) {
    for (const char* text :
         {"", "(vector)", "(vector,())", "(vector,(0,1))", "(vector,(0,1,0))", "(vector,(0,0,4))", "(vector,(0,1,4)",
          "(vector,(0,1,4)))", "(vector,(-1,1,4))", "(vector,(0,1,99999999999))", "(matrix,(0,1,4))", "nonsense"})
        EXPECT_TRUE(hosts_of(text, 4).empty()) << text;
}

TEST(PmixHosts, RanksAreListedByHost) {
    std::vector<job::Placement> runs;
    std::vector<std::string> hosts;
    ASSERT_TRUE(parse_pmix_hosts("a:0,2;empty:;b.org:1,3;", 4, runs, hosts));
    EXPECT_EQ(hosts, (std::vector<std::string>{"a", "b.org"}));
    EXPECT_EQ(runs, (std::vector<job::Placement>{{0, 2, 2, 0, 0}, {1, 2, 2, 1, 0}}));
    for (const char* text : {"", "a:0,1,2", "a:0,1,2,3,4", "a:0,1;b:1,2,3", "a:0,1,2,x", "a:0,1,2,-1", "a:0,1,2,3 ", "a"})
        EXPECT_FALSE(parse_pmix_hosts(text, 4, runs, hosts)) << text;
}

HostRecord example() {
    HostRecord record;
    record.port = 40001;
    record.host.id = 0xfedcba9876543210;
    record.host.key = 7;
    record.host.addresses = 2;
    record.host.ipv4[0] = 0x0100007f;
    record.host.ipv4[1] = 0xffffffff;
    std::snprintf(record.host.name, sizeof record.host.name, "node 1;=,");
    return record;
}

TEST(HostRecord, EncodesWithoutBlanksAndDecodes) {
    const std::string text = encode(example());
    EXPECT_EQ(text.find_first_of(" ;="), std::string::npos);
    HostRecord back;
    ASSERT_TRUE(decode(text, back));
    EXPECT_EQ(back.port, 40001);
    EXPECT_EQ(back.host.id, 0xfedcba9876543210);
    EXPECT_EQ(back.host.key, 7u);
    EXPECT_EQ(back.host.addresses, 2u);
    EXPECT_EQ(back.host.ipv4[1], 0xffffffff);
    EXPECT_STREQ(back.host.name, "node_1___");
}

TEST(HostRecord, MalformedRecordsAreRefused) {
    HostRecord out;
    const std::string text = encode(example());
    for (size_t length = 0; length < text.rfind(',') + 1; ++length) EXPECT_FALSE(decode(text.substr(0, length), out));
    const auto of_version = [](int major) { return "s" + std::to_string(major) + ","; };
    const std::string own = of_version(kThisVersion.major);
    ASSERT_TRUE(text.starts_with(own)) << text;
    EXPECT_FALSE(decode(of_version(kThisVersion.major + 1) + text.substr(own.size()), out)) << "another version";
    EXPECT_FALSE(decode(own + "0,1,1,1,1,name", out)) << "the port is 0";
    EXPECT_FALSE(decode(own + "10000,1,1,1,1,name", out)) << "no port is so high";
    EXPECT_FALSE(decode(own + "1,1,1,0,name", out)) << "the number of addresses is 0";
    EXPECT_FALSE(decode(own + "1,1,1,7,1,1,1,1,1,1,1,name", out)) << "the number of addresses is too large";
    EXPECT_FALSE(decode(own + "1,1,1,1,1," + std::string(64, 'x'), out)) << "too long a name";
}

TEST(HostJoin, MessagesDecodeAndTruncatedOnesDoNot) {
    const HostJoin join{wire_version(), 0x1234, 8, 3, 4711, 1};
    const HostWelcome welcome{"no", {5, 6, 7, 8}};
    HostJoin join_back;
    HostWelcome welcome_back;
    ASSERT_TRUE(decode(encode(join), join_back));
    EXPECT_EQ(join_back.job, 0x1234u);
    EXPECT_EQ(join_back.pid, 4711);
    ASSERT_TRUE(decode(encode(welcome), welcome_back));
    EXPECT_EQ(welcome_back.refusal, "no");
    EXPECT_EQ(welcome_back.job.owner_fd, 7);
    EXPECT_EQ(welcome_back.job.host, 8u);
    for (size_t length = 0; length < encode(join).size(); ++length)
        EXPECT_FALSE(decode(encode(join).substr(0, length), join_back));
    for (size_t length = 0; length < encode(welcome).size(); ++length)
        EXPECT_FALSE(decode(encode(welcome).substr(0, length), welcome_back));
    EXPECT_FALSE(decode(encode(join) + "x", join_back));
}

TEST(HostJoin, AJobsIdDependsOnNameAndProtocolOnly) {
    ManagedJob job;
    job.name = "12.0";
    job.size = 4;
    const job::JobId id = id_of(job, "PMIx");
    job.rank = 3;
    EXPECT_EQ(id_of(job, "PMIx"), id) << "all ranks find the same";
    EXPECT_NE(id_of(job, "PMI-2"), id);
    job.name = "12.1";
    EXPECT_NE(id_of(job, "PMIx"), id);
    EXPECT_NE(id_of(job, "PMIx") & 0xffffffffu, id & 0xffffffffu) << "context ids take this half";
}

}  // namespace
}  // namespace starling::bootstrap
