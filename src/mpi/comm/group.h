// Groups (MPI 5.0 section 7.3).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Group_size(MPI_Group group, int* size);
int Group_rank(MPI_Group group, int* rank);
int Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[]);
int Group_compare(MPI_Group group1, MPI_Group group2, int* result);
int Group_union(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup);
int Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup);
int Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group* newgroup);
int Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup);
int Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group* newgroup);
int Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup);
int Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group* newgroup);
int Group_free(MPI_Group* group);
int Group_toint(MPI_Group group);
MPI_Group Group_fromint(int group);

}  // namespace starling::mpi
