/* Features beyond the standard, or of another version of the standard than Starling's: half floats, error classes, functions for failures,
 * the version. Compiled by the compilers of MPICH, Open MPI and Starling. */
#define _GNU_SOURCE
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int faults;

static void expect(int good, const char* what) {
    if (good) return;
    printf("%s\n", what);
    ++faults;
}

#ifdef MPIX_C_FLOAT16
static void half_floats(int size) {
    _Float16 sent[3] = {1.5, -2, 0.25}, sum[3];
    char name[MPI_MAX_OBJECT_NAME];
    int length, bytes, integers, addresses, types, combiner;
    MPI_Datatype three, inner;
    MPI_Allreduce(sent, sum, 3, MPIX_C_FLOAT16, MPI_SUM, MPI_COMM_WORLD);
    expect(sum[0] == size * sent[0] && sum[1] == size * sent[1] && sum[2] == size * sent[2], "the sum of half floats");
    MPI_Type_size(MPIX_C_FLOAT16, &bytes);
    expect(bytes == 2, "their size");
    MPI_Type_get_name(MPIX_C_FLOAT16, name, &length);
    expect(strcmp(name, "MPIX_C_FLOAT16") == 0, "their name");
    MPI_Type_contiguous(3, MPIX_C_FLOAT16, &three);
    MPI_Type_get_envelope(three, &integers, &addresses, &types, &combiner);
    expect(integers == 1 && addresses == 0 && types == 1 && combiner == MPI_COMBINER_CONTIGUOUS, "the envelope");
    MPI_Type_get_contents(three, 1, 0, 1, &integers, NULL, &inner);
    expect(integers == 3 && inner == MPIX_C_FLOAT16, "the contents");
    MPI_Type_free(&three);
}
#endif

static void errors(void) {
    int class = 0, length = 0;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const int code = MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL);
    expect(MPI_Error_class(code, &class) == MPI_SUCCESS, "the class of an error");
#ifdef MPI_ERR_ERRHANDLER
    expect(class == MPI_ERR_ERRHANDLER, "of an error handler's");
#elif defined(OPEN_MPI)
    expect(class == MPI_ERR_ARG, "of an error whose class this interface lacks");
#endif
    for (int own = OWN_FIRST; own <= OWN_LAST; ++own) {
        expect(MPI_Error_class(own, &class) == MPI_SUCCESS && class == own, "a class of the interface's own");
        expect(MPI_Error_string(own, text, &length) == MPI_SUCCESS && length > 0 && length == (int)strlen(text), "its text");
    }
}

/* The functions for failures. The headers of these versions do not declare them, so the program looks them up. */
static void survivors(int size) {
    int (*const agree)(MPI_Comm, int*) = (int (*)(MPI_Comm, int*))dlsym(RTLD_DEFAULT, "MPIX_Comm_agree");
    int (*const revoke)(MPI_Comm) = (int (*)(MPI_Comm))dlsym(RTLD_DEFAULT, "MPIX_Comm_revoke");
    int (*const shrink)(MPI_Comm, MPI_Comm*) = (int (*)(MPI_Comm, MPI_Comm*))dlsym(RTLD_DEFAULT, "MPIX_Comm_shrink");
    int (*const ishrink)(MPI_Comm, MPI_Comm*, MPI_Request*) =
        (int (*)(MPI_Comm, MPI_Comm*, MPI_Request*))dlsym(RTLD_DEFAULT, "MPIX_Comm_ishrink");
    int (*const get_failed)(MPI_Comm, MPI_Group*) = (int (*)(MPI_Comm, MPI_Group*))dlsym(RTLD_DEFAULT, "MPIX_Comm_get_failed");
    int rank, class = 0, members = 0;
    MPI_Comm comm, living, later;
    MPI_Request request;
    MPI_Group failed;
    expect(agree && revoke && shrink && ishrink && get_failed, "functions for failures");
    if (faults) return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int flag = ~(1 << rank);
    expect(agree(comm, &flag) == MPI_SUCCESS && flag == -(1 << size), "the agreed flag");
    expect(get_failed(comm, &failed) == MPI_SUCCESS && MPI_Group_size(failed, &members) == MPI_SUCCESS && members == 0, "no failures");
    expect(ishrink(comm, &later, &request) == MPI_SUCCESS && MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "a later shrink");
    expect(MPI_Comm_size(later, &members) == MPI_SUCCESS && members == size, "its size");
    expect(revoke(comm) == MPI_SUCCESS, "a revocation");
    MPI_Error_class(MPI_Barrier(comm), &class);
    expect(class == REVOKED, "the class of a revoked call");
    expect(shrink(comm, &living) == MPI_SUCCESS && MPI_Barrier(living) == MPI_SUCCESS, "the shrunk communicator");
    MPI_Group_free(&failed);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&living);
    MPI_Comm_free(&later);
}

int main(int argc, char** argv) {
    int size, version, subversion;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef MPIX_C_FLOAT16
    half_floats(size);
#endif
    errors();
    survivors(size);
    MPI_Get_version(&version, &subversion);
    expect(version == VERSION && subversion == SUBVERSION, "the version");
    MPI_Finalize();
    return faults;
}
