#include "message/request_ids.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace starling::message {
namespace {

TEST(RequestIds, NameRequestsInUseOnly) {
    RequestIds<int> serials;
    std::vector<int> things(200);
    std::map<uint32_t, int*> model;
    std::mt19937 random(1);
    for (int step = 0; step < 20000; ++step) {
        if (model.size() < things.size() && random() % 2) {
            int* thing = nullptr;
            for (int& candidate : things)
                if (candidate == 0) thing = &candidate;
            ASSERT_TRUE(thing);
            *thing = 1;
            const uint32_t serial = serials.add(*thing);
            ASSERT_TRUE(model.try_emplace(serial, thing).second) << "a serial number in use was assigned again";
            EXPECT_LT(serial, things.size()) << "serials are reused";
        } else if (!model.empty()) {
            auto it = model.begin();
            std::advance(it, static_cast<long>(random() % model.size()));
            *it->second = 0;
            serials.remove(it->first);
            EXPECT_EQ(serials.find(it->first), nullptr);
            model.erase(it);
        }
        const auto probe = static_cast<uint32_t>(random() % 250);
        const auto known = model.find(probe);
        ASSERT_EQ(serials.find(probe), known == model.end() ? nullptr : known->second);
    }
    EXPECT_EQ(serials.find(~0u), nullptr);
}

TEST(RequestIds, VisitorsMayRemoveAndAdd) {
    RequestIds<int> serials;
    std::vector<int> things(100), more(100);
    for (int& thing : things) serials.add(thing);
    std::set<int*> visited;
    size_t added = 0;
    serials.each([&](int& thing) {
        EXPECT_TRUE(visited.insert(&thing).second) << "visited twice";
        const auto serial = static_cast<uint32_t>(&thing - things.data());
        if (&thing >= things.data() && &thing < things.data() + 100 && serial % 2) serials.remove(serial);
        if (added < 10) serials.add(more[added++]);
    });
    for (int& thing : things) EXPECT_TRUE(visited.count(&thing));
}

}  // namespace
}  // namespace starling::message
