// Completion of requests (MPI 5.0 sections 3.7.3 to 3.7.6 and 3.9) and generalized requests (13.2).
#pragma once

#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::mpi {

int Wait(MPI_Request* request, MPI_Status* status);
int Test(MPI_Request* request, int* flag, MPI_Status* status);
int Waitall(int count, MPI_Request array_of_requests[], MPI_Status* array_of_statuses);
int Testall(int count, MPI_Request array_of_requests[], int* flag, MPI_Status* array_of_statuses);
int Waitany(int count, MPI_Request array_of_requests[], int* indx, MPI_Status* status);
int Testany(int count, MPI_Request array_of_requests[], int* indx, int* flag, MPI_Status* status);
int Waitsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
             MPI_Status* array_of_statuses);
int Testsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
             MPI_Status* array_of_statuses);
int Request_free(MPI_Request* request);
int Request_get_status(MPI_Request request, int* flag, MPI_Status* status);
int Request_get_status_all(int count, const MPI_Request array_of_requests[], int* flag, MPI_Status* array_of_statuses);
int Request_get_status_any(int count, const MPI_Request array_of_requests[], int* indx, int* flag, MPI_Status* status);
int Request_get_status_some(int incount, const MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                            MPI_Status* array_of_statuses);
int Cancel(MPI_Request* request);
int Test_cancelled(const MPI_Status* status, int* flag);
int Status_set_cancelled(MPI_Status* status, int flag);
int Start(MPI_Request* request);
int Startall(int count, MPI_Request array_of_requests[]);

int Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                   MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* request);
int Grequest_complete(MPI_Request request);

int Get_count(const MPI_Status* status, MPI_Datatype datatype, CountOut count);

}  // namespace starling::mpi
