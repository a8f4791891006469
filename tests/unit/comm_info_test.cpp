#include <gtest/gtest.h>

#include "comm/errhandler.h"
#include "comm/error_codes.h"
#include "comm/info.h"

namespace starling::comm {
namespace {

TEST(Info, KeysKeepTheirOrder) {
    Info* info = make_info();
    info->set("b", "1");
    info->set("a", "2");
    info->set("b", "3");
    ASSERT_EQ(info->entries.size(), 2u);
    EXPECT_EQ(info->entries[0].key, "b");
    EXPECT_EQ(*info->find("b"), "3");
    EXPECT_EQ(info->find("c"), nullptr);
    EXPECT_TRUE(info->remove("b"));
    EXPECT_FALSE(info->remove("b"));
    EXPECT_EQ(info->entries[0].key, "a");
    destroy(info);
}

TEST(Info, HandlesDieWithTheObject) {
    Info* info = make_info();
    const MPI_Info handle = to_handle(info);
    EXPECT_EQ(from_handle(handle), info);
    destroy(info);
    EXPECT_EQ(from_handle(handle), nullptr);
    EXPECT_EQ(from_handle(MPI_INFO_NULL), nullptr);
    EXPECT_EQ(from_handle(MPI_INFO_ENV), environment_info());
}

TEST(Info, Environment) {
    Info before, after;
    read_process_info(before);
    set_environment_info(4, MPI_THREAD_MULTIPLE);
    read_process_info(after);
    EXPECT_EQ(before.entries, after.entries) << "the information before MPI_Init differs from that after it";
    ASSERT_NE(before.find("command"), nullptr);
    EXPECT_EQ(*environment_info()->find("command"), *before.find("command"));
    EXPECT_EQ(before.find("maxprocs"), nullptr);
    EXPECT_EQ(*environment_info()->find("maxprocs"), "4");
    EXPECT_EQ(*environment_info()->find("thread_level"), "MPI_THREAD_MULTIPLE");
}

TEST(ErrorCodes, StandardClasses) {
    EXPECT_EQ(class_of(MPI_ERR_RANK), MPI_ERR_RANK);
    EXPECT_STREQ(class_name(MPI_ERR_RANK), "MPI_ERR_RANK");
    for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; ++code) {
        EXPECT_TRUE(is_error_code(code)) << code;
        EXPECT_FALSE(text_of(code).empty()) << code;
    }
    EXPECT_FALSE(is_error_code(-1));
    EXPECT_FALSE(is_error_code(MPI_ERR_LASTCODE + 1));
    EXPECT_EQ(class_of(-1), MPI_ERR_UNKNOWN);
}

TEST(ErrorCodes, AddedOnes) {
    const int error_class = add_class();
    const int code = add_code(error_class);
    EXPECT_GT(error_class, MPI_ERR_LASTCODE);
    EXPECT_EQ(class_of(error_class), error_class);
    EXPECT_EQ(class_of(code), error_class);
    EXPECT_EQ(last_used_code(), code);
    EXPECT_EQ(text_of(code), "");
    EXPECT_EQ(set_text(code, "broken"), MPI_SUCCESS);
    EXPECT_EQ(text_of(code), "broken");
    EXPECT_EQ(remove_code(code), MPI_ERR_ARG) << "the code still has a string";
    EXPECT_EQ(remove_text(code), MPI_SUCCESS);
    EXPECT_EQ(text_of(code), "");
    EXPECT_EQ(remove_class(error_class), MPI_ERR_ARG) << "the class still has a code";
    EXPECT_EQ(remove_class(code), MPI_ERR_ARG) << "not a class";
    EXPECT_EQ(remove_code(error_class), MPI_ERR_ARG) << "the argument is a class, not only a code";
    EXPECT_EQ(remove_code(code), MPI_SUCCESS);
    EXPECT_EQ(remove_class(error_class), MPI_SUCCESS);
    EXPECT_EQ(last_used_code(), MPI_ERR_LASTCODE);
    EXPECT_EQ(set_text(MPI_ERR_RANK, "mine"), MPI_ERR_ARG);
}

TEST(Errhandlers, Handles) {
    EXPECT_EQ(from_handle(MPI_ERRORS_RETURN), errors_return());
    EXPECT_EQ(to_handle(errors_are_fatal()), MPI_ERRORS_ARE_FATAL);
    EXPECT_EQ(from_handle(MPI_ERRHANDLER_NULL), nullptr);
    Errhandler* handler = make_errhandler(HandlerKind::comm);
    const MPI_Errhandler handle = to_handle(handler);
    EXPECT_EQ(from_handle(handle), handler);
    handler->retain();
    handler->handles = 0;  // the user has freed the handler while a communicator uses it
    handler->release();
    EXPECT_EQ(from_handle(handle), nullptr);
    handler->release();
    EXPECT_EQ(handler->magic, 0u);
}

}  // namespace
}  // namespace starling::comm
