// Reads one of the library's counters through MPI's tool interface.
#pragma once

#include <mpi.h>
#include <string.h>

/// One performance variable; it counts from the creation of this handle.
typedef struct {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
} Counted;

/// Starts the counter whose name contains `wanted`. The handle is null if there is none. The tool interface must be initialized.
__attribute__((unused)) static Counted count_from_now(const char* wanted) {
    Counted counted = {MPI_T_PVAR_SESSION_NULL, MPI_T_PVAR_HANDLE_NULL};
    int count = 0;
    MPI_T_pvar_session_create(&counted.session);
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count && counted.handle == MPI_T_PVAR_HANDLE_NULL; ++i) {
        char name[200];
        int length = sizeof name, verbosity, kind, bind, readonly, continuous, atomic;
        MPI_Datatype type;
        MPI_T_enum enumeration;
        MPI_T_pvar_get_info(i, name, &length, &verbosity, &kind, &type, &enumeration, NULL, NULL, &bind, &readonly, &continuous,
                            &atomic);
        if (!strstr(name, wanted)) continue;
        MPI_T_pvar_handle_alloc(counted.session, i, NULL, &counted.handle, &length);
        if (!continuous) MPI_T_pvar_start(counted.session, counted.handle);
    }
    return counted;
}

__attribute__((unused)) static unsigned long long counted_so_far(Counted counted) {
    unsigned long long value = 0;
    MPI_T_pvar_read(counted.session, counted.handle, &value);
    return value;
}
