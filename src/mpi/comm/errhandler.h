// Error handlers, codes and classes (MPI 5.0 sections 9.3 to 9.5).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn, MPI_Errhandler* errhandler);
int Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler);
int Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* errhandler);
int Comm_call_errhandler(MPI_Comm comm, int errorcode);
int Win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn, MPI_Errhandler* errhandler);
int File_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn, MPI_Errhandler* errhandler);
int File_set_errhandler(MPI_File file, MPI_Errhandler errhandler);
int File_get_errhandler(MPI_File file, MPI_Errhandler* errhandler);
int File_call_errhandler(MPI_File fh, int errorcode);
int Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn, MPI_Errhandler* errhandler);
int Errhandler_free(MPI_Errhandler* errhandler);
int Errhandler_toint(MPI_Errhandler errhandler);
MPI_Errhandler Errhandler_fromint(int errhandler);

int Error_class(int errorcode, int* errorclass);
int Error_string(int errorcode, char* string, int* resultlen);
int Add_error_class(int* errorclass);
int Add_error_code(int errorclass, int* errorcode);
int Add_error_string(int errorcode, const char* string);
int Remove_error_class(int errorclass);
int Remove_error_code(int errorcode);
int Remove_error_string(int errorcode);

}  // namespace starling::mpi
