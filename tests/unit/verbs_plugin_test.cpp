// The plugin on devices that are not there: what its calls promise, and what comes of every event.
#include <gtest/gtest.h>

#include "fake/fabric.h"
#include "verbs/plugin.h"

namespace starling::verbs {
namespace {

iovec part(const std::string& text) { return {const_cast<char*>(text.data()), text.size()}; }

TEST(VerbsPlugin, Datagram) {
    fake::reset();
    fake::add({.name = "fake0"});
    fake::add({.name = "fake1"});
    Options options;
    PortFacts facts[4];
    ASSERT_EQ(starling_verbs_plugin.list(facts, 4, &options), 2);
    char problem[300] = {};
    Port* a = starling_verbs_plugin.open(&facts[0], &options, problem, sizeof problem);
    ASSERT_TRUE(a) << problem;
    Port* b = starling_verbs_plugin.open(&facts[1], &options, problem, sizeof problem);
    ASSERT_TRUE(b) << problem;
    std::string text = "hello";
    iovec one = part(text);
    EXPECT_EQ(a->send(b->address(), &one, 1), Status::done);
    Event events[8];
    ASSERT_EQ(b->poll(events, 8), 1);
    EXPECT_EQ(std::string(reinterpret_cast<char*>(events[0].data), events[0].bytes), text);
    b->give_back(events[0]);
    a->close();
    b->close();
    EXPECT_EQ(fake::living(), "");
}

}  // namespace
}  // namespace starling::verbs
