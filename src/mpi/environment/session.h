// Sessions and process sets (MPI 5.0 section 11.3).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session);
int Session_finalize(MPI_Session* session);
int Session_get_num_psets(MPI_Session session, MPI_Info info, int* npset_names);
int Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int* pset_len, char* pset_name);
int Session_get_info(MPI_Session session, MPI_Info* info_used);
int Session_get_pset_info(MPI_Session session, const char* pset_name, MPI_Info* info);
int Group_from_session_pset(MPI_Session session, const char* pset_name, MPI_Group* newgroup);
int Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler);
int Session_get_errhandler(MPI_Session session, MPI_Errhandler* errhandler);
int Session_call_errhandler(MPI_Session session, int errorcode);
int Session_toint(MPI_Session session);
MPI_Session Session_fromint(int session);

}  // namespace starling::mpi
