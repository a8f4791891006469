// Codes that keep the sentences of failed calls: comm/error_sentences.h.
#include "comm/error_sentences.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/error_codes.h"
#include "mpi-ext.h"
#include "mpi.h"

namespace starling::comm {
namespace {

TEST(ErrorSentences, CodeKeepsClassFunctionAndSentence) {
    const int first = keep_sentence(fail(MPI_ERR_RANK, "no rank %d", 1), "MPI_Send");
    const int second = keep_sentence(fail(MPI_ERR_ABI, "no rank %d", 2), "MPI_Recv");
    clear_failure();
    EXPECT_EQ(class_of(first), MPI_ERR_RANK);
    EXPECT_EQ(class_of(second), MPI_ERR_ABI);
    EXPECT_STREQ(failed_call(first)->function, "MPI_Send");
    EXPECT_EQ(text_of(first), "no rank 1");
    EXPECT_EQ(text_of(second), "no rank 2");
    EXPECT_TRUE(is_error_code(first));
}

// In a build whose counters start before their wrap, the first failure leaves entry 0 unused.
TEST(ErrorSentences, SuccessHasNoSentence) {
    keep_sentence(fail(MPI_ERR_RANK, "a sentence"), "MPI_Send");
    EXPECT_FALSE(failed_call(MPI_SUCCESS));
    EXPECT_EQ(text_of(MPI_SUCCESS), "No error");
}

TEST(ErrorSentences, CodeOfSentenceIsKeptWhenRaisedAgain) {
    const int code = keep_sentence(fail(MPI_ERR_TAG, "the first sentence"), "MPI_Send");
    fail(MPI_ERR_TAG, "another sentence");
    EXPECT_EQ(keep_sentence(code, "MPI_Recv"), code);
    EXPECT_EQ(text_of(code), "the first sentence");
}

TEST(ErrorSentences, ErrorsWithoutSentenceStayAsTheyAre) {
    clear_failure();
    EXPECT_EQ(keep_sentence(MPI_ERR_RANK, "MPI_Send"), MPI_ERR_RANK);
    fail(MPI_ERR_RANK, "a sentence");
    for (const int error : {MPI_SUCCESS, MPI_ERR_IN_STATUS, MPI_ERR_PENDING, MPI_ERR_LASTCODE, add_class(), -1})
        EXPECT_EQ(keep_sentence(error, "MPI_Send"), error);
}

TEST(ErrorSentences, CodesOfFaultToleranceAreClassesWithTheLatestSentence) {
    EXPECT_EQ(keep_sentence(fail(MPIX_ERR_REVOKED, "the first sentence"), "MPI_Send"), MPIX_ERR_REVOKED);
    EXPECT_EQ(keep_sentence(fail(MPIX_ERR_PROC_FAILED, "another class"), "MPI_Send"), MPIX_ERR_PROC_FAILED);
    EXPECT_EQ(text_of(MPIX_ERR_REVOKED), "the first sentence");
    keep_sentence(fail(MPIX_ERR_REVOKED, "the second sentence"), "MPI_Recv");
    EXPECT_EQ(text_of(MPIX_ERR_REVOKED), "the second sentence");
    EXPECT_EQ(class_of(MPIX_ERR_REVOKED), MPIX_ERR_REVOKED);
}

TEST(ErrorSentences, OverwrittenSentenceLeavesTheTextOfTheClass) {
    const int old = keep_sentence(fail(MPI_ERR_PORT, "an old sentence"), "MPI_Comm_connect");
    for (int i = 0; i < kSentences - 1; ++i) keep_sentence(fail(MPI_ERR_RANK, "sentence %d", i), "MPI_Send");
    EXPECT_EQ(text_of(old), "an old sentence");
    keep_sentence(fail(MPI_ERR_RANK, "one more"), "MPI_Send");
    EXPECT_FALSE(failed_call(old));
    EXPECT_TRUE(is_error_code(old));
    EXPECT_EQ(class_of(old), MPI_ERR_PORT);
    EXPECT_EQ(text_of(old), text_of(MPI_ERR_PORT));
}

TEST(ErrorSentences, CodesThatNoCallReturnedAreInvalid) {
    const int code = keep_sentence(fail(MPI_ERR_RANK, "a sentence"), "MPI_Send");
    EXPECT_FALSE(is_error_code(code + (1000 << 7)));
    EXPECT_FALSE(is_error_code(code - class_of(code)));  // the class would be MPI_SUCCESS
}

TEST(ErrorSentences, ThreadsGetTheirOwnSentences) {
    constexpr int kThreads = 8, kCalls = 2000;
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int thread = 0; thread < kThreads; ++thread)
        threads.emplace_back([&wrong, thread] {
            for (int i = 0; i < kCalls; ++i) {
                const std::string sentence = "call " + std::to_string(i) + " of thread " + std::to_string(thread);
                const int code = keep_sentence(fail(MPI_ERR_RANK, "%s", sentence.c_str()), "MPI_Send");
                // The other threads may have overwritten it, but never with a text that is not this code's.
                const std::string text = text_of(code);
                if (text != sentence && text != "Invalid rank") ++wrong;
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace starling::comm
