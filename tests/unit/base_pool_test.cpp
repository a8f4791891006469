#include "base/pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace starling {
namespace {

struct Thing {
    static constexpr uint32_t kMagic = 0x12345678;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    int value;
    std::string text;
    static inline int alive = 0;

    explicit Thing(int v) : value(v), text(std::to_string(v) + " and too long for the small string") { ++alive; }
    ~Thing() { --alive; }
    Thing(const Thing&) = delete;
};

TEST(Pool, ObjectsNeverOverlap) {
    Pool<Thing> pool;
    std::map<uint32_t, Thing*> model;
    std::set<Thing*> places;
    std::mt19937 random(1);
    for (int step = 0; step < 20000; ++step) {
        if (model.size() < 300 && random() % 2) {
            Thing* thing = pool.create(step);
            EXPECT_EQ(thing->magic, Thing::kMagic);
            ASSERT_TRUE(model.try_emplace(thing->pool_index, thing).second);
            places.insert(thing);
        } else if (!model.empty()) {
            auto it = model.begin();
            std::advance(it, static_cast<long>(random() % model.size()));
            const int value = it->second->value;
            EXPECT_EQ(it->second->text, std::to_string(value) + " and too long for the small string");
            Thing* freed = it->second;
            pool.destroy(freed);
            EXPECT_EQ(freed->magic, 0u);  // legal to read: the memory stays that of a Thing
            EXPECT_EQ(pool.at(it->first), nullptr);
            model.erase(it);
        }
        ASSERT_EQ(pool.live(), model.size());
        ASSERT_EQ(Thing::alive, static_cast<int>(model.size()));
        const auto index = static_cast<uint32_t>(random() % 600);
        const auto known = model.find(index);
        ASSERT_EQ(pool.at(index), known == model.end() ? nullptr : known->second);
    }
    EXPECT_LE(places.size(), 512u) << "freed objects are reused";
    for (auto& [index, thing] : model) pool.destroy(thing);
}

TEST(Pool, StaysSmallWhenLittleIsUsed) {
    Pool<Thing> pool;
    std::set<Thing*> places;
    for (int i = 0; i < 1000; ++i) {
        Thing* thing = pool.create(i);
        EXPECT_LT(thing->pool_index, 16u);
        places.insert(thing);
        pool.destroy(thing);
    }
    EXPECT_LE(places.size(), 16u);
    EXPECT_EQ(pool.at(1u << 31), nullptr);
}

}  // namespace
}  // namespace starling
