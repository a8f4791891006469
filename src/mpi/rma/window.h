// Windows (MPI 5.0 chapter 12): creation and freeing, queries, synchronization.
#pragma once

#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::mpi {

int Win_create(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win);
int Win_allocate(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win);
int Win_allocate_shared(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win);
int Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, CountOut disp_unit, void* baseptr);
int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win);
int Win_attach(MPI_Win win, void* base, MPI_Aint size);
int Win_detach(MPI_Win win, const void* base);
int Win_free(MPI_Win* win);
int Win_get_group(MPI_Win win, MPI_Group* group);
int Win_set_name(MPI_Win win, const char* win_name);
int Win_get_name(MPI_Win win, char* win_name, int* resultlen);
int Win_set_info(MPI_Win win, MPI_Info info);
int Win_get_info(MPI_Win win, MPI_Info* info_used);
int Win_set_attr(MPI_Win win, int win_keyval, void* attribute_val);
int Win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag);
int Win_delete_attr(MPI_Win win, int win_keyval);
int Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler);
int Win_get_errhandler(MPI_Win win, MPI_Errhandler* errhandler);
int Win_call_errhandler(MPI_Win win, int errorcode);
int Win_toint(MPI_Win win);
MPI_Win Win_fromint(int win);

int Win_fence(int assertion, MPI_Win win);
int Win_start(MPI_Group group, int assertion, MPI_Win win);
int Win_complete(MPI_Win win);
int Win_post(MPI_Group group, int assertion, MPI_Win win);
int Win_wait(MPI_Win win);
int Win_test(MPI_Win win, int* flag);
int Win_lock(int lock_type, int rank, int assertion, MPI_Win win);
int Win_unlock(int rank, MPI_Win win);
int Win_lock_all(int assertion, MPI_Win win);
int Win_unlock_all(MPI_Win win);
int Win_flush(int rank, MPI_Win win);
int Win_flush_local(int rank, MPI_Win win);
int Win_flush_all(MPI_Win win);
int Win_flush_local_all(MPI_Win win);
int Win_sync(MPI_Win win);

}  // namespace starling::mpi
