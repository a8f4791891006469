// Data access (MPI 5.0 section 14.4): reads and writes of files in all forms.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int File_read(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_read_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_read_at(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_read_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_read_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_read_ordered(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_iread(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int File_iread_all(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int File_iread_at(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int File_iread_at_all(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int File_iread_shared(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int File_read_all_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype);
int File_read_all_end(MPI_File fh, void* buf, MPI_Status* status);
int File_read_at_all_begin(MPI_File fh, MPI_Offset offset, void* buf, MPI_Count count, MPI_Datatype datatype);
int File_read_at_all_end(MPI_File fh, void* buf, MPI_Status* status);
int File_read_ordered_begin(MPI_File fh, void* buf, MPI_Count count, MPI_Datatype datatype);
int File_read_ordered_end(MPI_File fh, void* buf, MPI_Status* status);
int File_write(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_write_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_write_at(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_write_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                      MPI_Status* status);
int File_write_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_write_ordered(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Status* status);
int File_iwrite(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int File_iwrite_all(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int File_iwrite_at(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                   MPI_Request* request);
int File_iwrite_at_all(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype,
                       MPI_Request* request);
int File_iwrite_shared(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* request);
int File_write_all_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype);
int File_write_all_end(MPI_File fh, const void* buf, MPI_Status* status);
int File_write_at_all_begin(MPI_File fh, MPI_Offset offset, const void* buf, MPI_Count count, MPI_Datatype datatype);
int File_write_at_all_end(MPI_File fh, const void* buf, MPI_Status* status);
int File_write_ordered_begin(MPI_File fh, const void* buf, MPI_Count count, MPI_Datatype datatype);
int File_write_ordered_end(MPI_File fh, const void* buf, MPI_Status* status);

}  // namespace starling::mpi
