// Dynamic process management (MPI 5.0 chapter 11).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* intercomm,
               int array_of_errcodes[]);
int Comm_spawn_multiple(int count, char* array_of_commands[], char** array_of_argv[], const int array_of_maxprocs[],
                        const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm* intercomm, int array_of_errcodes[]);
int Comm_get_parent(MPI_Comm* parent);
int Comm_replace(MPI_Comm comm, const char* command, char* argv[], MPI_Info info, MPI_Comm* newcomm);

int Open_port(MPI_Info info, char* port_name);
int Close_port(const char* port_name);
int Comm_accept(const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm);
int Comm_connect(const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm);
int Comm_join(int fd, MPI_Comm* intercomm);

int Publish_name(const char* service_name, MPI_Info info, const char* port_name);
int Unpublish_name(const char* service_name, MPI_Info info, const char* port_name);
int Lookup_name(const char* service_name, MPI_Info info, char* port_name);

}  // namespace starling::mpi
