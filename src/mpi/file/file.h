// Files (MPI 5.0 chapter 14): opening and closing, views, pointers, size, consistency.
#pragma once

#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::mpi {

int File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh);
int File_close(MPI_File* fh);
int File_delete(const char* filename, MPI_Info info);
int File_set_size(MPI_File fh, MPI_Offset size);
int File_preallocate(MPI_File fh, MPI_Offset size);
int File_get_size(MPI_File fh, MPI_Offset* size);
int File_get_group(MPI_File fh, MPI_Group* group);
int File_get_amode(MPI_File fh, int* amode);
int File_set_info(MPI_File fh, MPI_Info info);
int File_get_info(MPI_File fh, MPI_Info* info_used);
int File_set_view(MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char* datarep, MPI_Info info);
int File_get_view(MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype, char* datarep);
int File_seek(MPI_File fh, MPI_Offset offset, int whence);
int File_seek_shared(MPI_File fh, MPI_Offset offset, int whence);
int File_get_position(MPI_File fh, MPI_Offset* offset);
int File_get_position_shared(MPI_File fh, MPI_Offset* offset);
int File_get_byte_offset(MPI_File fh, MPI_Offset offset, MPI_Offset* disp);
int File_get_type_extent(MPI_File fh, MPI_Datatype datatype, MPI_Count* extent);
int File_set_atomicity(MPI_File fh, int flag);
int File_get_atomicity(MPI_File fh, int* flag);
int File_sync(MPI_File fh);
int File_toint(MPI_File file);
MPI_File File_fromint(int file);

}  // namespace starling::mpi
