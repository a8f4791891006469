// The C part of mixed.f90.
#include "../mpi/check.h"

static void maximum(void* in, void* inout, int* length, MPI_Datatype* type) {
    CHECK(*type == MPI_INTEGER, "a C operation gets C's handle");
    for (int i = 0; i < *length; ++i)
        if (((int*)in)[i] > ((int*)inout)[i]) ((int*)inout)[i] = ((int*)in)[i];
}

void mixed_begin_(const MPI_Fint* comm, const MPI_Fint* keyval, MPI_Fint* op, MPI_Fint* other) {
    MPI_Comm here = MPI_Comm_f2c(*comm), copy;
    int flag = 0;
    MPI_Aint* value = NULL;
    CHECK(MPI_Comm_c2f(here) == *comm, "%d", *comm);
    // For an attribute set by Fortran, C must get the address of its value, on a duplicated communicator too.
    MPI_Comm_get_attr(here, *keyval, &value, &flag);
    CHECK(flag && *value == 4711, "flag %d", flag);
    MPI_Comm_dup(here, &copy);
    MPI_Comm_get_attr(copy, *keyval, &value, &flag);
    CHECK(flag && *value == 4711, "flag %d", flag);
    MPI_Comm_free(&copy);
    MPI_Op made;
    MPI_Op_create(maximum, 1, &made);
    *op = MPI_Op_c2f(made);
    int mine = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &mine, NULL);
    MPI_Comm_set_attr(here, mine, (void*)(intptr_t)815);
    *other = mine;
}

void mixed_check_(const MPI_Fint* comm, const int* value) {
    int size = 0;
    MPI_Comm_size(MPI_Comm_f2c(*comm), &size);
    CHECK(*value == size - 1, "%d of %d", *value, size);
}

void mixed_status_(const MPI_Fint* status) {
    MPI_Status here;
    MPI_Fint again[MPI_F_STATUS_SIZE];
    int count = 0, rank = -1;
    MPI_Status_f2c(status, &here);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_count(&here, MPI_INTEGER, &count);
    CHECK(here.MPI_SOURCE == rank && here.MPI_TAG == 6 && count == 1, "%d %d %d", here.MPI_SOURCE, here.MPI_TAG, count);
    MPI_Status_c2f(&here, again);
    CHECK(memcmp(again, status, sizeof again) == 0 && again[MPI_F_TAG] == 6, "a converted status must be unchanged");
}
