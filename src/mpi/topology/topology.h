// Process topologies (MPI 5.0 chapter 8) except their collectives.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Topo_test(MPI_Comm comm, int* status);
int Dims_create(int nnodes, int ndims, int dims[]);

int Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm* comm_cart);
int Cartdim_get(MPI_Comm comm, int* ndims);
int Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]);
int Cart_rank(MPI_Comm comm, const int coords[], int* rank);
int Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]);
int Cart_shift(MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest);
int Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm);
int Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank);

int Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int reorder, MPI_Comm* comm_graph);
int Graphdims_get(MPI_Comm comm, int* nnodes, int* nedges);
int Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]);
int Graph_neighbors_count(MPI_Comm comm, int rank, int* nneighbors);
int Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]);
int Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int* newrank);

int Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int sourceweights[], int outdegree,
                               const int destinations[], const int destweights[], MPI_Info info, int reorder,
                               MPI_Comm* comm_dist_graph);
int Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[], const int destinations[],
                      const int weights[], MPI_Info info, int reorder, MPI_Comm* comm_dist_graph);
int Dist_graph_neighbors_count(MPI_Comm comm, int* indegree, int* outdegree, int* weighted);
int Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
                         int destinations[], int destweights[]);

}  // namespace starling::mpi
