! Tests a profiling tool in Fortran, which intercepts calls of an mpi_f08 program and passes them to the library. Its procedures with
! buffers are bind(C), as the standard requires where array sections are not copied (MPI 5.0 sections 15.2 and 19.1.5).
module tool_counts
  implicit none
  integer :: sends = 0, ranks = 0
end module tool_counts

subroutine MPI_Send_f08ts(buf, count, datatype, dest, tag, comm, ierror) bind(C)
  use mpi_f08, only: MPI_Datatype, MPI_Comm, PMPI_Send
  use tool_counts
  use, intrinsic :: iso_c_binding
  implicit none
  type(*), dimension(..), intent(in) :: buf
  integer(c_int), intent(in) :: count, dest, tag
  type(MPI_Datatype), intent(in) :: datatype
  type(MPI_Comm), intent(in) :: comm
  integer(c_int), optional, intent(out) :: ierror
  sends = sends + count
  call PMPI_Send(buf, count, datatype, dest, tag, comm, ierror)
end subroutine MPI_Send_f08ts

subroutine MPI_Comm_rank_f08(comm, rank, ierror)
  use mpi_f08, only: MPI_Comm, PMPI_Comm_rank
  use tool_counts
  implicit none
  type(MPI_Comm), intent(in) :: comm
  integer, intent(out) :: rank
  integer, optional, intent(out) :: ierror
  ranks = ranks + 1
  call PMPI_Comm_rank(comm, rank, ierror)
end subroutine MPI_Comm_rank_f08

program tool
  use mpi_f08
  use tool_counts
  implicit none
  integer :: rank, sent(5, 3), got(3)
  type(MPI_Request) :: request
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  sent = rank
  sent(2, :) = [7, 8, 9]
  got = 0
  call MPI_Irecv(got, 3, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, request)
  call MPI_Send(sent(2, :), 3, MPI_INTEGER, rank, 1, MPI_COMM_WORLD)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (ranks /= 1 .or. sends /= 3 .or. any(got /= [7, 8, 9])) then
    print *, 'FAIL ', ranks, sends, got
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  call MPI_Finalize()
end program tool
