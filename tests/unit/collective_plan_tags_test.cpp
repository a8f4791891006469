// Tags of persistent collective operations (Exchange::draw_plan_tag).
#include <gtest/gtest.h>

#include <set>

#include "collective/core/exchange.h"

namespace {

namespace message = starling::message;
using starling::collective::Exchange;
using starling::datatype::Datatype;

/// An exchange that only draws tags.
class Tags : public Exchange {
  public:
    Tags() = default;
    explicit Tags(const Exchange& of) : Exchange(of) {}
    void start_send(message::SendRequest&, const void*, int64_t, const Datatype&, int, int) override {}
    void start_receive(message::ReceiveRequest&, void*, int64_t, const Datatype&, int, int) override {}
    void start_marker(message::SendRequest&, const message::ErrorMarker&, int64_t, int, int) override {}
    bool withdraw(message::ReceiveRequest&) override { return true; }
    void throw_away(uint64_t, int, int) override {}
};

/// The exchange of a persistent operation.
class PlanOfTags final : public Tags {
  public:
    explicit PlanOfTags(Exchange& of) : Tags(of) { one_tag_ = of.draw_plan_tag(); }
};

TEST(PlanTags, TwoStartsDifferEvenIfTheStageIsCreatedBetweenThem) {
    Tags all;
    PlanOfTags plan(all);
    for (int start = 0; start < 20; ++start) {
        const int first = plan.next_tag(), creation = plan.next_tag(), second = plan.next_tag();
        EXPECT_NE(first, second);
        EXPECT_NE(first, creation);
        EXPECT_NE(creation, second);
    }
}

TEST(PlanTags, NoTwoOperationsShareATag) {
    Tags all;
    PlanOfTags one(all), other(all);
    std::set<int> of_one;
    for (int i = 0; i < 20; ++i)
        for (const int tag = one.next_tag(); const int each : {tag, Exchange::second_tag(tag)}) of_one.insert(each);
    for (int i = 0; i < 20; ++i) {
        for (const int tag : {other.next_tag(), all.next_tag()}) {
            EXPECT_FALSE(of_one.contains(tag));
            EXPECT_FALSE(of_one.contains(Exchange::second_tag(tag)));
        }
    }
}

}  // namespace
