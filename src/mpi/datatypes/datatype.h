// Datatypes: life, size and bounds, names, and counting what was received (MPI 5.0 section 5.1).
#pragma once

#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::mpi {

int Type_commit(MPI_Datatype* datatype);
int Type_free(MPI_Datatype* datatype);

int Type_size(MPI_Datatype datatype, CountOut size);
int Type_size_x(MPI_Datatype datatype, MPI_Count* size);
int Type_get_extent(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent);
int Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent);
int Type_get_true_extent(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent);
int Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent);

int Type_set_name(MPI_Datatype datatype, const char* type_name);
int Type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen);

int Type_toint(MPI_Datatype datatype);
MPI_Datatype Type_fromint(int datatype);

int Get_elements(const MPI_Status* status, MPI_Datatype datatype, CountOut count);
int Get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count);
int Status_set_elements(MPI_Status* status, MPI_Datatype datatype, MPI_Count count);
int Status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count);

int Get_address(const void* location, MPI_Aint* address);

}  // namespace starling::mpi
