// Constructors of datatypes (MPI 5.0 section 5.1). The large-count forms are separate functions because a type remembers which form made it
// (MPI_Type_get_envelope).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype);

int Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                          MPI_Datatype* newtype);

int Type_indexed(int count, const int array_of_blocklengths[], const int array_of_displacements[], MPI_Datatype oldtype,
                 MPI_Datatype* newtype);
int Type_indexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                   MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_hindexed(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                         MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                           MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[], MPI_Datatype oldtype,
                              MPI_Datatype* newtype);
int Type_create_indexed_block_c(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
                                MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_hindexed_block(int count, int blocklength, const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                               MPI_Datatype* newtype);
int Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength, const MPI_Count array_of_displacements[],
                                 MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_struct(int count, const int array_of_blocklengths[], const MPI_Aint array_of_displacements[],
                       const MPI_Datatype array_of_types[], MPI_Datatype* newtype);
int Type_create_struct_c(MPI_Count count, const MPI_Count array_of_blocklengths[], const MPI_Count array_of_displacements[],
                         const MPI_Datatype array_of_types[], MPI_Datatype* newtype);

int Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[], const int array_of_starts[],
                         int order, MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_subarray_c(int ndims, const MPI_Count array_of_sizes[], const MPI_Count array_of_subsizes[],
                           const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype, MPI_Datatype* newtype);
int Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[], const int array_of_distribs[],
                       const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
                       MPI_Datatype* newtype);
int Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[], const int array_of_distribs[],
                         const int array_of_dargs[], const int array_of_psizes[], int order, MPI_Datatype oldtype,
                         MPI_Datatype* newtype);

int Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype);
int Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype);
int Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype);

int Type_create_f90_real(int p, int r, MPI_Datatype* newtype);
int Type_create_f90_complex(int p, int r, MPI_Datatype* newtype);
int Type_create_f90_integer(int r, MPI_Datatype* newtype);
int Type_match_size(int typeclass, int size, MPI_Datatype* datatype);
int Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype* pair_type);

}  // namespace starling::mpi
