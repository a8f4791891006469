// Functions that return how a datatype was made (MPI 5.0 section 5.1.13).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes, int* combiner);
int Type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses, MPI_Count* num_large_counts,
                        MPI_Count* num_datatypes, int* combiner);
int Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes, int array_of_integers[],
                      MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]);
int Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                        MPI_Count max_datatypes, int array_of_integers[], MPI_Aint array_of_addresses[],
                        MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]);

}  // namespace starling::mpi
