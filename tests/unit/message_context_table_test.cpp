// The table from context ids to match contexts: lookups stay correct and cheap, whatever was added or removed before.
#include "message/context_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace starling::message {
namespace {

class Nobody final : public Roster {
  public:
    int size() const override { return 0; }
    link::Process at(int) const override { return {}; }
};

TEST(ContextTable, FindsExactlyTheAddedContexts) {
    const Nobody nobody;
    std::mt19937_64 random(5);
    const uint64_t base = random();
    std::map<uint64_t, std::unique_ptr<MatchContext>> model;
    for (int step = 0; step < 30'000; ++step) {
        const uint64_t context = base + 16 * (random() % 500) + random() % 2;
        const auto found = model.find(context);
        if (found == model.end())
            model.emplace(context, std::make_unique<MatchContext>(context, nobody, 0));
        else
            model.erase(found);
        const uint64_t probe = base + 16 * (random() % 500) + random() % 2;
        const auto known = model.find(probe);
        ASSERT_EQ(directory.find(probe), known == model.end() ? nullptr : known->second.get());
        if (step % 1000 != 0) continue;
        for (const auto& [number, channel] : model) ASSERT_EQ(directory.find(number), channel.get());
    }
}

TEST(ContextTable, RemovingVisitsFewSlotsWhateverTheTableSize) {
    const Nobody nobody;
    std::vector<std::unique_ptr<MatchContext>> channels;
    for (uint64_t i = 0; i < 16'000; ++i)
        for (const uint64_t plane : {0, 1})
            channels.push_back(std::make_unique<MatchContext>((0x123456789 + i) << 4 | plane, nobody, 0));
    std::shuffle(channels.begin(), channels.end(), std::mt19937(7));
    size_t looks = 0;
    for (size_t i = 0; i < 1000; ++i) {
        looks += directory.remove(*channels[i]);
        directory.insert(*channels[i]);
    }
    EXPECT_LT(looks, 8 * 1000u) << "these are the steps of 1,000 lookups among 32,000 contexts";
}

}  // namespace
}  // namespace starling::message
