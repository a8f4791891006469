/* Features beyond the standard, or of another version of the standard than Starling's: half floats, error classes, the version. Compiled by
 * the compilers of MPICH, Open MPI and Starling. */
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
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
        expect(MPI_Error_string(own, text, &length) == MPI_SUCCESS && strncmp(text, "MPIX_ERR_", 9) == 0 && length == (int)strlen(text),
               "its text");
    }
}

int main(int argc, char** argv) {
    int size, version, subversion;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#ifdef MPIX_C_FLOAT16
    half_floats(size);
#endif
    errors();
    MPI_Get_version(&version, &subversion);
    expect(version == VERSION && subversion == SUBVERSION, "the version");
    MPI_Finalize();
    return faults;
}
