// The parts of a submitted job that the daemon sends over the network.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/wire.h"
#include "launch/common/client_protocol.h"
#include "launch/daemon/client_relay.h"

using namespace starling;
using namespace starling::launch;

namespace {

Submission submission(Forward forward) {
    Submission one;
    one.spec.programs.resize(2);
    for (Program& program : one.spec.programs) program.argv = {"a.out"};
    one.spec.programs[1].forward = forward;
    one.directory = "/home";
    one.environment = {"PATH=/bin", "AWS_SECRET_ACCESS_KEY=s3cr3t", "STARLING_WAIT=poll"};
    return one;
}

TEST(SubmissionForNetwork, HasOnlyTheEnvironmentThatRemoteRanksGet) {
    std::string sent;
    Submission there;
    ASSERT_TRUE(submission_for_network(encode(submission(Forward::usual)), sent));
    EXPECT_EQ(sent.find("s3cr3t"), std::string::npos);
    ASSERT_TRUE(decode(sent, there));
    EXPECT_EQ(there.environment, (std::vector<std::string>{"PATH=/bin", "STARLING_WAIT=poll"}));
    EXPECT_TRUE(there.partial);
    EXPECT_EQ(there.directory, "/home");
}

TEST(SubmissionForNetwork, HasAllOfTheEnvironmentIfTheUserWantsThat) {
    std::string sent;
    Submission there;
    ASSERT_TRUE(submission_for_network(encode(submission(Forward::all)), sent));
    ASSERT_TRUE(decode(sent, there));
    EXPECT_EQ(there.environment.size(), 3u);
    EXPECT_FALSE(there.partial);
}

TEST(SubmissionForNetwork, OfAnotherVersionCarriesOnlyTheVersion) {
    Submission future = submission(Forward::usual);
    future.version = wire_version() + (1u << 16);
    std::string sent;
    ASSERT_TRUE(submission_for_network(encode(future), sent));
    EXPECT_EQ(sent.find("s3cr3t"), std::string::npos);
    EXPECT_EQ(Reader(sent).number<uint32_t>(), future.version);
    EXPECT_FALSE(submission_for_network("garbage", sent) && !sent.empty() && sent.find("garbage") != std::string::npos);
}

}  // namespace
