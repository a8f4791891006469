#include "comm/attribute.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace starling::comm {
namespace {

const AttributeHolder kWorld(MPI_COMM_WORLD);

// Records the calls of the callbacks below, and contains the results that the callbacks return.
struct Log {
    std::vector<std::string> calls;
    int copy_result = MPI_SUCCESS;
    int delete_result = MPI_SUCCESS;
    int flag = 1;
};

int copy(MPI_Comm, int, void* extra, void* in, void* out, int* flag) {
    auto* log = static_cast<Log*>(extra);
    log->calls.push_back("copy " + std::to_string(reinterpret_cast<intptr_t>(in)));
    *static_cast<void**>(out) = static_cast<char*>(in) + 100;
    *flag = log->flag;
    return log->copy_result;
}

int erase(MPI_Comm comm, int, void* value, void* extra) {
    auto* log = static_cast<Log*>(extra);
    EXPECT_EQ(comm, MPI_COMM_WORLD);
    log->calls.push_back("delete " + std::to_string(reinterpret_cast<intptr_t>(value)));
    return log->delete_result;
}

void* value(intptr_t number) { return reinterpret_cast<void*>(number); }

class Attributes : public testing::Test {
  protected:
    Keyval* key() {
        Keyval* keyval = make_keyval(AttributeKind::comm, &log);
        keyval->comm_copy = copy;
        keyval->comm_delete = erase;
        return keyval;
    }
    void expect_calls(std::vector<std::string> calls) {
        EXPECT_EQ(log.calls, calls);
        log.calls.clear();
    }
    Log log;
    AttributeSet set;
};

TEST_F(Attributes, SetGetReplaceRemove) {
    Keyval* keyval = key();
    EXPECT_FALSE(set.get(keyval->number, nullptr));
    EXPECT_EQ(set.set(kWorld, keyval, value(1)), MPI_SUCCESS);
    void* found = nullptr;
    EXPECT_TRUE(set.get(keyval->number, &found));
    EXPECT_EQ(found, value(1));
    EXPECT_EQ(set.set(kWorld, keyval, value(2)), MPI_SUCCESS);
    expect_calls({"delete 1"});
    EXPECT_EQ(set.remove(kWorld, keyval->number), MPI_SUCCESS);
    expect_calls({"delete 2"});
    EXPECT_EQ(set.remove(kWorld, keyval->number), MPI_ERR_KEYVAL);
    free_keyval(keyval);
}

TEST_F(Attributes, ClearDeletesFromTheLastSetToTheFirst) {
    Keyval *a = key(), *b = key(), *c = key();
    set.set(kWorld, a, value(1));
    set.set(kWorld, b, value(2));
    set.set(kWorld, c, value(3));
    set.set(kWorld, a, value(4));
    log.calls.clear();
    EXPECT_EQ(set.clear(kWorld), MPI_SUCCESS);
    expect_calls({"delete 4", "delete 3", "delete 2"});
    for (Keyval* keyval : {a, b, c}) free_keyval(keyval);
}

TEST_F(Attributes, AFailingDeleteKeepsTheAttribute) {
    Keyval* keyval = key();
    set.set(kWorld, keyval, value(1));
    log.delete_result = MPI_ERR_OTHER;
    EXPECT_EQ(set.remove(kWorld, keyval->number), MPI_ERR_OTHER);
    EXPECT_EQ(set.clear(kWorld), MPI_ERR_OTHER);
    EXPECT_EQ(set.set(kWorld, keyval, value(2)), MPI_ERR_OTHER);
    void* found = nullptr;
    EXPECT_TRUE(set.get(keyval->number, &found));
    EXPECT_EQ(found, value(1));
    log.delete_result = MPI_SUCCESS;
    EXPECT_EQ(set.clear(kWorld), MPI_SUCCESS);
    free_keyval(keyval);
}

TEST_F(Attributes, CopyFollowsTheCallbacks) {
    Keyval *called = key(), *dup = make_keyval(AttributeKind::comm, nullptr), *null = make_keyval(AttributeKind::comm, nullptr);
    dup->comm_copy = MPI_COMM_DUP_FN;
    null->comm_copy = MPI_COMM_NULL_COPY_FN;
    set.set(kWorld, called, value(1));
    set.set(kWorld, dup, value(2));
    set.set(kWorld, null, value(3));
    AttributeSet duplicate;
    EXPECT_EQ(set.copy_to(kWorld, duplicate), MPI_SUCCESS);
    void* found = nullptr;
    EXPECT_TRUE(duplicate.get(called->number, &found));
    EXPECT_EQ(found, value(101));
    EXPECT_TRUE(duplicate.get(dup->number, &found));
    EXPECT_EQ(found, value(2));
    EXPECT_FALSE(duplicate.get(null->number, &found));

    log.flag = 0;
    AttributeSet without;
    EXPECT_EQ(set.copy_to(kWorld, without), MPI_SUCCESS);
    EXPECT_FALSE(without.get(called->number, &found));

    log.copy_result = MPI_ERR_OTHER;
    AttributeSet failed;
    EXPECT_EQ(set.copy_to(kWorld, failed), MPI_ERR_OTHER);
    EXPECT_TRUE(failed.empty());
    for (Keyval* keyval : {called, dup, null}) free_keyval(keyval);
}

TEST_F(Attributes, AFreedKeyLivesWhileItIsUsed) {
    Keyval* keyval = key();
    const int number = keyval->number;
    set.set(kWorld, keyval, value(1));
    free_keyval(keyval);
    ASSERT_EQ(find_keyval(AttributeKind::comm, number), keyval);
    EXPECT_TRUE(keyval->freed);
    EXPECT_EQ(set.remove(kWorld, number), MPI_SUCCESS);
    expect_calls({"delete 1"});
    EXPECT_EQ(find_keyval(AttributeKind::comm, number), nullptr);
}

TEST_F(Attributes, KeysBelongToOneKindOfObject) {
    Keyval* keyval = make_keyval(AttributeKind::type, nullptr);
    EXPECT_EQ(find_keyval(AttributeKind::comm, keyval->number), nullptr);
    EXPECT_EQ(find_keyval(AttributeKind::type, keyval->number), keyval);
    EXPECT_EQ(find_keyval(AttributeKind::type, MPI_KEYVAL_INVALID), nullptr);
    EXPECT_EQ(find_keyval(AttributeKind::type, -5), nullptr);
    free_keyval(keyval);
}

// The attribute set and the key that meddling_delete() changes: a callback that changes the set for which it is called.
AttributeSet* meddled = nullptr;
Keyval* extra_key = nullptr;
int meddling_delete(MPI_Comm, int, void*, void*) {
    if (extra_key) {
        Keyval* keyval = extra_key;
        extra_key = nullptr;
        meddled->set(kWorld, keyval, value(9));
    }
    return MPI_SUCCESS;
}

TEST_F(Attributes, CallbacksMayChangeTheSet) {
    Keyval* keyval = make_keyval(AttributeKind::comm, nullptr);
    keyval->comm_delete = meddling_delete;
    Keyval* later = key();
    meddled = &set;
    extra_key = later;
    set.set(kWorld, keyval, value(1));
    EXPECT_EQ(set.clear(kWorld), MPI_SUCCESS);
    EXPECT_TRUE(set.empty());
    expect_calls({"delete 9"});
    free_keyval(keyval);
    free_keyval(later);
}

}  // namespace
}  // namespace starling::comm
