// Tests cached attributes: they are copied on dup and deleted on free, on overwriting and in MPI_Finalize, in the right order. Also tests
// callbacks that return an error, keyvals freed while in use, and attributes of datatypes.
#include "check.h"

static int copies, deletes, last_deleted, refuse, order[16], order_length;

static int on_copy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
    (void)comm, (void)keyval;
    copies++;
    *flag = extra != NULL;
    *(void**)out = (char*)in + 100;
    return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int on_delete(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)extra;
    deletes++;
    last_deleted = (int)(intptr_t)value;
    if (order_length < 16) order[order_length++] = last_deleted;
    return refuse ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int type_copies, type_deletes;
static int on_type_copy(MPI_Datatype type, int keyval, void* extra, void* in, void* out, int* flag) {
    (void)type, (void)keyval, (void)extra;
    type_copies++;
    *flag = 1;
    *(void**)out = in;
    return MPI_SUCCESS;
}
static int on_type_delete(MPI_Datatype type, int keyval, void* value, void* extra) {
    (void)type, (void)keyval, (void)value, (void)extra;
    type_deletes++;
    return MPI_SUCCESS;
}

static int at_finalize, at_finalize_calls;
static int on_finalize(MPI_Comm comm, int keyval, void* value, void* extra) {
    (void)comm, (void)keyval, (void)extra;
    int finalized = 1;
    MPI_Finalized(&finalized);
    if (finalized || (intptr_t)value != 3 - at_finalize_calls) exit(9);  // expects that the attribute set last is deleted first
    at_finalize_calls++;
    return MPI_SUCCESS;
}

int main(int argc, char** argv) {
    int keyval, dropped, flag, kept;
    intptr_t value;
    MPI_Comm comm, dup;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_keyval(on_copy, on_delete, &keyval, &copies));
    OK(MPI_Comm_create_keyval(on_copy, on_delete, &dropped, NULL));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &kept, NULL));
    OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
    EXPECT_INT(flag, 0);
    OK(MPI_Comm_set_attr(comm, keyval, (void*)7));
    OK(MPI_Comm_set_attr(comm, dropped, (void*)8));
    OK(MPI_Comm_set_attr(comm, kept, (void*)9));
    OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
    CHECK(flag && value == 7);
    OK(MPI_Comm_set_attr(comm, keyval, (void*)17));  // overwriting deletes the old value
    EXPECT_INT(deletes, 1);
    EXPECT_INT(last_deleted, 7);

    OK(MPI_Comm_dup(comm, &dup));
    EXPECT_INT(copies, 2);
    OK(MPI_Comm_get_attr(dup, keyval, &value, &flag));
    CHECK(flag && value == 117, "%d", (int)value);
    OK(MPI_Comm_get_attr(dup, dropped, &value, &flag));
    EXPECT_INT(flag, 0);
    OK(MPI_Comm_get_attr(dup, kept, &value, &flag));
    CHECK(flag && value == 9);
    OK(MPI_Comm_delete_attr(dup, keyval));
    EXPECT_INT(deletes, 2);
    EXPECT_INT(last_deleted, 117);
    OK(MPI_Comm_free(&dup));
    EXPECT_INT(deletes, 2);

    // A split does not copy attributes. A freed keyval stays valid until its last attribute is deleted.
    OK(MPI_Comm_split(comm, 0, 0, &dup));
    EXPECT_INT(copies, 2);
    OK(MPI_Comm_free(&dup));
    int was = dropped;
    OK(MPI_Comm_free_keyval(&dropped));
    EXPECT_INT(dropped, MPI_KEYVAL_INVALID);
    OK(MPI_Comm_get_attr(comm, was, &value, &flag));
    CHECK(flag && value == 8);

    // A copy function that fails makes dup fail; a delete function that fails makes delete_attr fail.
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    refuse = 1;
    CHECK(MPI_Comm_dup(comm, &dup) != MPI_SUCCESS, "dup must report the copy function's error");
    CHECK(MPI_Comm_delete_attr(comm, keyval) != MPI_SUCCESS, "the delete function's error must be reported");
    refuse = 0;
    deletes = order_length = 0;
    OK(MPI_Comm_free(&comm));
    EXPECT_INT(deletes, 2);
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Comm_free_keyval(&kept));

    // Predefined attributes can't be changed.
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL) != MPI_SUCCESS, "MPI_TAG_UB is read-only");

    MPI_Datatype type, copy;
    OK(MPI_Type_create_keyval(on_type_copy, on_type_delete, &keyval, NULL));
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    OK(MPI_Type_set_attr(type, keyval, (void*)5));
    OK(MPI_Type_dup(type, &copy));
    OK(MPI_Type_get_attr(copy, keyval, &value, &flag));
    CHECK(flag && value == 5);
    EXPECT_INT(type_copies, 1);
    OK(MPI_Type_free(&copy));
    OK(MPI_Type_free(&type));
    EXPECT_INT(type_deletes, 2);
    OK(MPI_Type_free_keyval(&keyval));

    // Attributes of MPI_COMM_SELF are deleted at the start of MPI_Finalize, in reverse order (MPI 4.0, 11.2.4).
    for (int i = 1; i <= 3; i++) {
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &keyval, &at_finalize));
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, (void*)(intptr_t)i));
        OK(MPI_Comm_free_keyval(&keyval));
    }
    OK(MPI_Finalize());
    CHECK(at_finalize_calls == 3, "%d callbacks ran in MPI_Finalize", at_finalize_calls);
    return 0;
}
