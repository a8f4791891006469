#include "base/list.h"

#include <gtest/gtest.h>

#include <list>
#include <random>
#include <vector>

namespace starling {
namespace {

struct Item {
    int number = 0;
    ListHook hook, other_hook;
};
using ItemList = List<Item, &Item::hook>;

template <class L>
std::vector<int> numbers(L& list) {
    std::vector<int> all;
    for (Item* item = list.front(); item; item = list.next(item)) all.push_back(item->number);
    return all;
}

TEST(List, BehavesAsAList) {
    std::vector<Item> items(50);
    for (int i = 0; i < 50; ++i) items[static_cast<size_t>(i)].number = i;
    ItemList list;
    std::list<int> model;
    std::mt19937 random(1);
    for (int step = 0; step < 20000; ++step) {
        Item& item = items[random() % items.size()];
        if (item.hook.linked()) {
            if (random() % 2) {
                item.hook.unlink();
                model.remove(item.number);
            } else {
                Item* first = list.pop_front();
                ASSERT_TRUE(first);
                EXPECT_EQ(first->number, model.front());
                EXPECT_FALSE(first->hook.linked());
                model.pop_front();
            }
        } else if (random() % 2) {
            list.push_back(&item);
            model.push_back(item.number);
        } else {
            list.push_front(&item);
            model.push_front(item.number);
        }
        ASSERT_EQ(list.empty(), model.empty());
        ASSERT_EQ(numbers(list), std::vector<int>(model.begin(), model.end()));
    }
}

TEST(List, HooksAreIndependent) {
    Item a, b;
    a.number = 1, b.number = 2;
    ItemList list;
    List<Item, &Item::other_hook> other;
    list.push_back(&a);
    list.push_back(&b);
    other.push_back(&b);
    other.push_back(&a);
    EXPECT_EQ(numbers(list), (std::vector<int>{1, 2}));
    EXPECT_EQ(numbers(other), (std::vector<int>{2, 1}));
    a.hook.unlink();
    a.hook.unlink();  // has no effect, because the element is not in a list
    EXPECT_EQ(numbers(list), (std::vector<int>{2}));
    EXPECT_EQ(numbers(other), (std::vector<int>{2, 1}));
}

TEST(List, AnEmptyListReturnsNull) {
    ItemList list;
    EXPECT_EQ(list.front(), nullptr);
    EXPECT_EQ(list.pop_front(), nullptr);
    EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace starling
