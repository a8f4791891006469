// Attributes and names of communicators and windows; attributes of datatypes (MPI 5.0 sections 7.7
// and 7.8).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Comm_create_keyval(MPI_Comm_copy_attr_function* comm_copy_attr_fn, MPI_Comm_delete_attr_function* comm_delete_attr_fn,
                       int* comm_keyval, void* extra_state);
int Comm_free_keyval(int* comm_keyval);
int Comm_set_attr(MPI_Comm comm, int comm_keyval, void* attribute_val);
int Comm_get_attr(MPI_Comm comm, int comm_keyval, void* attribute_val, int* flag);
int Comm_delete_attr(MPI_Comm comm, int comm_keyval);

int Type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn, MPI_Type_delete_attr_function* type_delete_attr_fn,
                       int* type_keyval, void* extra_state);
int Type_free_keyval(int* type_keyval);
int Type_set_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val);
int Type_get_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag);
int Type_delete_attr(MPI_Datatype datatype, int type_keyval);

int Win_create_keyval(MPI_Win_copy_attr_function* win_copy_attr_fn, MPI_Win_delete_attr_function* win_delete_attr_fn,
                      int* win_keyval, void* extra_state);
int Win_free_keyval(int* win_keyval);

int Keyval_create(MPI_Copy_function* copy_fn, MPI_Delete_function* delete_fn, int* keyval, void* extra_state);
int Keyval_free(int* keyval);
int Attr_put(MPI_Comm comm, int keyval, void* attribute_val);
int Attr_get(MPI_Comm comm, int keyval, void* attribute_val, int* flag);
int Attr_delete(MPI_Comm comm, int keyval);

}  // namespace starling::mpi
