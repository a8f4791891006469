// Tests generalized requests: the query, free and cancel callbacks run in the right number and order for every way to complete a request.
#include "check.h"

struct Record {
    int queries, frees, cancels, complete_at_cancel, tag;
};

static int on_query(void* state, MPI_Status* status) {
    struct Record* record = state;
    record->queries++;
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, record->cancels > 0 && !record->complete_at_cancel);
    status->MPI_SOURCE = 4;
    status->MPI_TAG = record->tag;
    return MPI_SUCCESS;
}

static int on_free(void* state) {
    ((struct Record*)state)->frees++;
    return MPI_SUCCESS;
}

static int on_cancel(void* state, int complete) {
    struct Record* record = state;
    record->cancels++;
    record->complete_at_cancel = complete;
    return MPI_SUCCESS;
}

static int failing_query(void* state, MPI_Status* status) {
    (void)state, (void)status;
    return MPI_ERR_OTHER;
}

static int failing_cancel(void* state, int complete) {
    (void)state, (void)complete;
    return MPI_ERR_INTERN;
}

// Leaves the sentence of a failed call with this thread.
static void refused_setting(void) {
    MPI_T_cvar_handle handle;
    int level, index, count;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    CHECK(MPI_T_cvar_get_index("STARLING_SPIN_US", &index) == MPI_SUCCESS, "MPI_T_cvar_get_index");
    CHECK(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS, "MPI_T_cvar_handle_alloc");
    const long long none = -4711;
    EXPECT_INT(MPI_T_cvar_write(handle, &none), MPI_T_ERR_INVALID);
    OK(MPI_T_cvar_handle_free(&handle));
    OK(MPI_T_finalize());
}

// The program's functions return codes of their own, which get no sentence of an earlier failure.
static void failing_callbacks(void) {
    struct Record record = {.tag = 1};
    MPI_Request request;
    MPI_Status status;
    int flag;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Grequest_start(failing_query, on_free, failing_cancel, &record, &request));
    refused_setting();
    EXPECT_INT(MPI_Cancel(&request), MPI_ERR_INTERN);
    OK(MPI_Grequest_complete(request));
    refused_setting();
    EXPECT_INT(MPI_Request_get_status(request, &flag, &status), MPI_ERR_OTHER);
#if MPI_AT_LEAST(4, 1)
    int index, count;
    refused_setting();
    EXPECT_INT(MPI_Request_get_status_any(1, &request, &index, &flag, &status), MPI_ERR_OTHER);
    refused_setting();
    EXPECT_INT(MPI_Request_get_status_all(1, &request, &flag, &status), MPI_ERR_IN_STATUS);
    EXPECT_INT(status.MPI_ERROR, MPI_ERR_OTHER);
    refused_setting();
    EXPECT_INT(MPI_Request_get_status_some(1, &request, &count, &index, &status), MPI_ERR_IN_STATUS);
    EXPECT_INT(status.MPI_ERROR, MPI_ERR_OTHER);
#endif
    refused_setting();
    EXPECT_INT(MPI_Wait(&request, &status), MPI_ERR_OTHER);
}

int main(int argc, char** argv) {
    MPI_Request request, requests[3];
    MPI_Status status, statuses[3];
    int flag, count, cancelled, index;
    OK(MPI_Init(&argc, &argv));

    struct Record one = {.tag = 11};
    OK(MPI_Grequest_start(on_query, on_free, on_cancel, &one, &request));
    OK(MPI_Test(&request, &flag, &status));
    EXPECT_INT(flag, 0);
    EXPECT_INT(one.queries, 0);
    OK(MPI_Grequest_complete(request));
    OK(MPI_Request_get_status(request, &flag, &status));
    EXPECT_INT(flag, 1);
    EXPECT_INT(one.frees, 0);
    OK(MPI_Wait(&request, &status));
    CHECK(request == MPI_REQUEST_NULL);
    EXPECT_INT(status.MPI_TAG, 11);
    EXPECT_INT(status.MPI_SOURCE, 4);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EXPECT_INT(count, 3);
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 0);
    EXPECT_INT(one.frees, 1);
    EXPECT_INT(one.cancels, 0);

    struct Record two = {.tag = 12};
    OK(MPI_Grequest_start(on_query, on_free, on_cancel, &two, &request));
    OK(MPI_Cancel(&request));
    EXPECT_INT(two.cancels, 1);
    EXPECT_INT(two.complete_at_cancel, 0);
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 1);
    EXPECT_INT(two.frees, 1);

    // A request is completed and then freed: the free callback runs after both calls.
    struct Record three = {.tag = 13};
    MPI_Request copy;
    OK(MPI_Grequest_start(on_query, on_free, on_cancel, &three, &request));
    copy = request;
    OK(MPI_Grequest_complete(copy));
    OK(MPI_Request_free(&request));
    EXPECT_INT(three.frees, 1);

    struct Record many[3] = {{.tag = 20}, {.tag = 21}, {.tag = 22}};
    for (int i = 0; i < 3; i++) OK(MPI_Grequest_start(on_query, on_free, on_cancel, &many[i], &requests[i]));
    OK(MPI_Grequest_complete(requests[1]));
    OK(MPI_Waitany(3, requests, &index, &status));
    EXPECT_INT(index, 1);
    EXPECT_INT(status.MPI_TAG, 21);
    EXPECT_INT(many[1].frees, 1);
    OK(MPI_Testall(3, requests, &flag, statuses));
    EXPECT_INT(flag, 0);
    OK(MPI_Grequest_complete(requests[0]));
    OK(MPI_Grequest_complete(requests[2]));
    OK(MPI_Waitall(3, requests, statuses));
    EXPECT_INT(statuses[0].MPI_TAG, 20);
    EXPECT_INT(statuses[2].MPI_TAG, 22);
    for (int i = 0; i < 3; i++) EXPECT_INT(many[i].frees, 1);
    failing_callbacks();
    OK(MPI_Finalize());
    return 0;
}
