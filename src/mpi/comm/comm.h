// Communicators (MPI 5.0 sections 7.4 to 7.6 and 7.8).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Comm_size(MPI_Comm comm, int* size);
int Comm_rank(MPI_Comm comm, int* rank);
int Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int* result);
int Comm_group(MPI_Comm comm, MPI_Group* group);
int Comm_test_inter(MPI_Comm comm, int* flag);
int Comm_remote_size(MPI_Comm comm, int* size);
int Comm_remote_group(MPI_Comm comm, MPI_Group* group);
int Comm_free(MPI_Comm* comm);
int Comm_disconnect(MPI_Comm* comm);
int Comm_set_name(MPI_Comm comm, const char* comm_name);
int Comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen);
int Comm_set_info(MPI_Comm comm, MPI_Info info);
int Comm_get_info(MPI_Comm comm, MPI_Info* info_used);
int Comm_toint(MPI_Comm comm);
MPI_Comm Comm_fromint(int comm);

int Comm_dup(MPI_Comm comm, MPI_Comm* newcomm);
int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm);
int Comm_idup(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request);
int Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request);
int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm);
int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm);
int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm);
int Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm);
int Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                     MPI_Comm* newintercomm);
int Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm* newintracomm);
int Comm_create_from_group(MPI_Group group, const char* stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm* newcomm);
int Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
                                 const char* stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm* newintercomm);

}  // namespace starling::mpi
