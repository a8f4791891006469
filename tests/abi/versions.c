/* Tests the functions that may be called before MPI_Init and after MPI_Finalize, and functions that are not built. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

static int class_of(int code) {
    int class = MPI_SUCCESS;
    CHECK(MPI_Error_class(code, &class) == MPI_SUCCESS);
    return class;
}

static void check_versions(void) {
    int version = 0, subversion = -1, major = 0, minor = -1, length = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version == MPI_VERSION && subversion == MPI_SUBVERSION);
    CHECK(MPI_Abi_get_version(&major, &minor) == MPI_SUCCESS && major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    CHECK(MPI_Get_library_version(text, &length) == MPI_SUCCESS && (int)strlen(text) == length);
    CHECK(strstr(text, "Starling") == text);
}

static void check_sizes(void) {
    char value[16];
    int flag = 0, length = sizeof value, count = 0;
    MPI_Info info = MPI_INFO_NULL;
    CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS && info != MPI_INFO_NULL);
    CHECK(MPI_Info_get_string(info, "mpi_count_size", &length, value, &flag) == MPI_SUCCESS && flag);
    CHECK(atoi(value) == (int)sizeof(MPI_Count));
    CHECK(MPI_Info_get_nkeys(info, &count) == MPI_SUCCESS && count == 3);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
}

static void check_fortran(void) {
    int yes = 1, no = 0, got_yes = -1, got_no = -1, is_set = -1;
    MPI_Info info = MPI_INFO_ENV;
    CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_integer_size", "4");
    CHECK(MPI_Abi_set_fortran_info(info) == MPI_SUCCESS);
    MPI_Info_set(info, "mpi_integer_size", "8");
    CHECK(class_of(MPI_Abi_set_fortran_info(info)) == MPI_ERR_ABI);
    MPI_Info_free(&info);
    CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info != MPI_INFO_NULL);
    MPI_Info_free(&info);
    CHECK(MPI_Abi_get_fortran_booleans(4, &got_yes, &got_no, &is_set) == MPI_SUCCESS && !is_set);
    CHECK(MPI_Abi_set_fortran_booleans(4, &yes, &no) == MPI_SUCCESS);
    CHECK(MPI_Abi_get_fortran_booleans(4, &got_yes, &got_no, &is_set) == MPI_SUCCESS && is_set);
    CHECK(got_yes == 1 && got_no == 0);
    CHECK(class_of(MPI_Abi_set_fortran_booleans(4, &no, &yes)) == MPI_ERR_ABI);
    CHECK(class_of(MPI_Abi_set_fortran_booleans(3, &no, &yes)) == MPI_ERR_ARG);
}

static void check_integers(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    int value = 0;
    CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 0x101 && MPI_Comm_fromint(0x102) == MPI_COMM_SELF);
    CHECK(MPI_Type_toint(MPI_INT) == 0x209 && MPI_Type_fromint(0x214) == MPI_DOUBLE);
    // MPI_Comm_fromint and MPI_Type_fromint must return the null handle for an integer that is no handle's number.
    for (int none = -198832896; none; none = none < 0 ? 0x7fffffff : 0) {
        CHECK(MPI_Comm_fromint(none) == MPI_COMM_NULL && MPI_Type_fromint(none) == MPI_DATATYPE_NULL);
        CHECK(MPI_Group_fromint(none) == MPI_GROUP_NULL && MPI_Op_fromint(none) == MPI_OP_NULL);
        CHECK(MPI_Info_fromint(none) == MPI_INFO_NULL && MPI_Errhandler_fromint(none) == MPI_ERRHANDLER_NULL);
        CHECK(MPI_Request_fromint(none) == MPI_REQUEST_NULL && MPI_Message_fromint(none) == MPI_MESSAGE_NULL);
        CHECK(MPI_Win_fromint(none) == MPI_WIN_NULL && MPI_Session_fromint(none) == MPI_SESSION_NULL);
        CHECK(MPI_File_fromint(none) == MPI_FILE_NULL);
    }
    CHECK(MPI_Win_toint(MPI_WIN_NULL) == 0x110 && MPI_File_fromint(0x118) == MPI_FILE_NULL);
    CHECK(MPI_Message_toint(MPI_MESSAGE_NO_PROC) == 0x129 && MPI_Message_fromint(0x128) == MPI_MESSAGE_NULL);
    CHECK(MPI_Request_toint(MPI_REQUEST_NULL) == 0x180 && MPI_Request_fromint(0x180) == MPI_REQUEST_NULL);
    CHECK(MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request) == MPI_SUCCESS);
    CHECK(MPI_Request_toint(request) >= 0x1000 && MPI_Request_fromint(MPI_Request_toint(request)) == request);
    MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void check_memory_and_clock(void) {
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    void* memory = NULL;
    const double before = MPI_Wtime();
    CHECK(MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory) == MPI_SUCCESS && memory && (MPI_Aint)memory % 64 == 0);
    memset(memory, 1, 1000);
    CHECK(MPI_Free_mem(memory) == MPI_SUCCESS);
    CHECK(class_of(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory)) == MPI_ERR_ARG);
    CHECK(class_of(MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &memory)) == MPI_ERR_NO_MEM);
    CHECK(MPI_Wtime() >= before && MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
    CHECK(MPI_Get_processor_name(name, &length) == MPI_SUCCESS && (int)strlen(name) == length && length > 0);
    CHECK(MPI_Aint_diff(MPI_Aint_add(1000, 24), 1000) == 24);
    CHECK(MPI_Pcontrol(1, "anything", 2) == MPI_SUCCESS);
}

static void check_files(void) {
    MPI_File file;
    CHECK(class_of(MPI_File_open(MPI_COMM_SELF, "no such file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file)) == MPI_ERR_NO_SUCH_FILE);
}

static void check_tools(void) {
    int value = 0, provided = 0;
    CHECK(MPI_T_cvar_get_num(&value) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
    CHECK(MPI_T_cvar_get_num(&value) == MPI_SUCCESS && value > 0);
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    CHECK(MPI_T_cvar_get_num(&value) == MPI_T_ERR_NOT_INITIALIZED);
}

static void check_status(void) {
    MPI_Status status;
    int value = 0;
    CHECK(MPI_Status_set_source(&status, 3) == MPI_SUCCESS && status.MPI_SOURCE == 3);
    CHECK(MPI_Status_set_tag(&status, 4) == MPI_SUCCESS && MPI_Status_get_tag(&status, &value) == MPI_SUCCESS && value == 4);
    CHECK(MPI_Status_set_error(&status, 5) == MPI_SUCCESS && status.MPI_ERROR == 5);
}

int main(int argc, char** argv) {
    check_versions();
    check_sizes();
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    check_versions();
    check_fortran();
    check_integers();
    check_memory_and_clock();
    check_files();
    check_tools();
    check_status();
    MPI_Finalize();
    check_versions();
    check_sizes();
    return 0;
}
