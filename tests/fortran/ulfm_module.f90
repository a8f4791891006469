! Tests module mpi_ext: the functions for failures, in a job that loses its last rank.
program ulfm_module
  use mpi
  use mpi_ext
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    function raise(number) bind(C)
      import :: c_int
      integer(c_int), value :: number
      integer(c_int) :: raise
    end function raise
  end interface
  integer :: rank, size, ierr, comm, parent
  integer(kind=MPI_ADDRESS_KIND) :: ft
  logical :: is_set

  call MPI_Init(ierr)
  call MPI_Comm_get_parent(parent, ierr)
  if (parent /= MPI_COMM_NULL) call join()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, ft, is_set, ierr)
  call check(is_set .and. ft == 1, 'MPIX_FT')
  call without_failure()
  call revocation()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN, ierr)
  call lose_last()
  call acknowledge()
  call go_on()
  call MPI_Finalize(ierr)

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    integer :: error
    if (holds) return
    print *, 'FAIL ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine check

  subroutine check_class(code, wanted, what)
    integer, intent(in) :: code, wanted
    character(len=*), intent(in) :: what
    integer :: class, error
    call MPI_Error_class(code, class, error)
    if (class /= wanted) print *, 'class ', class
    call check(class == wanted, what)
  end subroutine check_class

  subroutine without_failure()
    integer, asynchronous :: flag
    integer :: request, made, n
    flag = merge(6, 7, rank == 0)
    call MPIX_Comm_iagree(MPI_COMM_WORLD, flag, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(flag == 6, 'iagree')
    call MPIX_Comm_ishrink(MPI_COMM_WORLD, made, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Comm_size(made, n, ierr)
    call check(n == size, 'ishrink')
    call MPI_Comm_free(made, ierr)
  end subroutine without_failure

  ! Rank 0 revokes a communicator. The barrier ends the creation on all ranks before.
  subroutine revocation()
    integer :: revoked, again, n
    logical :: flag
    call MPI_Comm_dup(MPI_COMM_WORLD, revoked, ierr)
    call MPI_Comm_set_errhandler(revoked, MPI_ERRORS_RETURN, ierr)
    call MPIX_Comm_is_revoked(revoked, flag, ierr)
    call check(.not. flag, 'not revoked yet')
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    if (rank == 0) then
      call PMPIX_Comm_revoke(revoked, ierr)
    else
      call MPI_Recv(n, 1, MPI_INTEGER, 0, 1, revoked, MPI_STATUS_IGNORE, ierr)
      call check_class(ierr, MPIX_ERR_REVOKED, 'revoked')
    end if
    call MPIX_Comm_is_revoked(revoked, flag, ierr)
    call check(flag, 'is_revoked')
    call MPIX_Comm_shrink(revoked, again, ierr)
    call MPI_Comm_size(again, n, ierr)
    call check(n == size, 'shrunk')
    call MPI_Comm_free(revoked, ierr)
    call MPI_Comm_free(again, ierr)
  end subroutine revocation

  ! The last rank dies when it has a message of each other rank.
  subroutine lose_last()
    integer :: i, value
    value = rank
    if (rank == size - 1) then
      do i = 0, size - 2
        call MPI_Recv(value, 1, MPI_INTEGER, i, 2, comm, MPI_STATUS_IGNORE, ierr)
      end do
      i = raise(9)
    end if
    call MPI_Send(value, 1, MPI_INTEGER, size - 1, 2, comm, ierr)
    call MPI_Recv(value, 1, MPI_INTEGER, size - 1, 3, comm, MPI_STATUS_IGNORE, ierr)
    call check_class(ierr, MPIX_ERR_PROC_FAILED, 'failure')
  end subroutine lose_last

  ! A receive from any rank waits for the living ones only after the acknowledgment.
  subroutine acknowledge()
    integer, asynchronous :: value
    integer :: request, n, group, flag
    call MPI_Irecv(value, 1, MPI_INTEGER, MPI_ANY_SOURCE, 4, comm, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check_class(ierr, MPIX_ERR_PROC_FAILED_PENDING, 'pending')
    call MPIX_Comm_get_failed(comm, group, ierr)
    call MPI_Group_size(group, n, ierr)
    call check(n == 1, 'get_failed')
    call MPI_Group_free(group, ierr)
    call MPIX_Comm_ack_failed(comm, 1, n, ierr)
    call check(n == 1, 'ack_failed')
    call MPIX_Comm_failure_ack(comm, ierr)
    call MPIX_Comm_failure_get_acked(comm, group, ierr)
    call MPI_Group_size(group, n, ierr)
    call check(n == 1, 'failure_get_acked')
    call MPI_Group_free(group, ierr)
    call MPI_Send(17, 1, MPI_INTEGER, rank, 4, comm, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(ierr == MPI_SUCCESS .and. value == 17, 'goes on')
    flag = merge(5, 7, rank == 0)
    call MPIX_Comm_agree(comm, flag, ierr)
    call check(ierr == MPI_SUCCESS .and. flag == 5, 'agree')
  end subroutine acknowledge

  ! A substitute gets the rank of the dead process, the last one.
  subroutine join()
    integer :: whole
    integer :: total
    call MPIX_Comm_replace(MPI_COMM_NULL, ' ', MPI_ARGV_NULL, MPI_INFO_NULL, whole, ierr)
    call MPI_Comm_rank(whole, rank, ierr)
    call MPI_Comm_size(whole, size, ierr)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, whole, ierr)
    call check(rank == size - 1 .and. total == size .and. command_argument_count() == 2, 'substitute')
    call MPI_Comm_free(whole, ierr)
    call MPI_Finalize(ierr)
    stop
  end subroutine join

  subroutine go_on()
    integer :: living, whole, total
    character(len=1000) :: command
    call MPIX_Comm_shrink(comm, living, ierr)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, living, ierr)
    call check(total == size - 1, 'living')
    call get_command_argument(0, command)
    call MPIX_Comm_replace(comm, command, [character(len=8) :: 'an', 'argument', ' '], MPI_INFO_NULL, whole, ierr)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, whole, ierr)
    call check(total == size, 'replaced')
    call MPI_Comm_free(whole, ierr)
    if (rank == 0) print *, 'the survivors went on'
    call MPI_Comm_free(living, ierr)
    call MPI_Comm_free(comm, ierr)
  end subroutine go_on
end program ulfm_module
