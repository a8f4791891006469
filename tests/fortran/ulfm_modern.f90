! Tests module mpi_f08_ext: the functions for failures, in a job that loses its last rank.
program ulfm_modern
  use mpi_f08
  use mpi_f08_ext
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    function raise(number) bind(C)
      import :: c_int
      integer(c_int), value :: number
      integer(c_int) :: raise
    end function raise
  end interface
  integer :: rank, size, ierr
  type(MPI_Comm) :: comm, parent
  integer(kind=MPI_ADDRESS_KIND) :: ft
  logical :: is_set

  call MPI_Init(ierr)
  call MPI_Comm_get_parent(parent)
  if (parent /= MPI_COMM_NULL) call join()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, ft, is_set)
  call check(is_set .and. ft == 1, 'MPIX_FT')
  call without_failure()
  call revocation()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  call lose_last()
  call acknowledge()
  call go_on()
  call MPI_Finalize(ierr)

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print *, 'FAIL ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

  subroutine check_class(code, wanted, what)
    integer, intent(in) :: code, wanted
    character(len=*), intent(in) :: what
    integer :: class
    call MPI_Error_class(code, class)
    if (class /= wanted) print *, 'class ', class
    call check(class == wanted, what)
  end subroutine check_class

  subroutine without_failure()
    integer, asynchronous :: flag
    integer :: n
    type(MPI_Request) :: request
    type(MPI_Comm) :: made
    flag = merge(6, 7, rank == 0)
    call MPIX_Comm_iagree(MPI_COMM_WORLD, flag, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(flag == 6, 'iagree')
    call MPIX_Comm_ishrink(MPI_COMM_WORLD, made, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Comm_size(made, n)
    call check(n == size, 'ishrink')
    call MPI_Comm_free(made)
  end subroutine without_failure

  ! Rank 0 revokes a communicator. The barrier ends the creation on all ranks before.
  subroutine revocation()
    integer :: n
    type(MPI_Comm) :: revoked, again
    logical :: flag
    call MPI_Comm_dup(MPI_COMM_WORLD, revoked)
    call MPI_Comm_set_errhandler(revoked, MPI_ERRORS_RETURN)
    call MPIX_Comm_is_revoked(revoked, flag)
    call check(.not. flag, 'not revoked yet')
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) then
      call PMPIX_Comm_revoke(revoked)
    else
      call MPI_Recv(n, 1, MPI_INTEGER, 0, 1, revoked, MPI_STATUS_IGNORE, ierr)
      call check_class(ierr, MPIX_ERR_REVOKED, 'revoked')
    end if
    call MPIX_Comm_is_revoked(revoked, flag)
    call check(flag, 'is_revoked')
    call MPIX_Comm_shrink(revoked, again)
    call MPI_Comm_size(again, n)
    call check(n == size, 'shrunk')
    call MPI_Comm_free(revoked)
    call MPI_Comm_free(again)
  end subroutine revocation

  ! The last rank dies when it has a message of each other rank.
  subroutine lose_last()
    integer :: i, value
    value = rank
    if (rank == size - 1) then
      do i = 0, size - 2
        call MPI_Recv(value, 1, MPI_INTEGER, i, 2, comm, MPI_STATUS_IGNORE)
      end do
      i = raise(9)
    end if
    call MPI_Send(value, 1, MPI_INTEGER, size - 1, 2, comm)
    call MPI_Recv(value, 1, MPI_INTEGER, size - 1, 3, comm, MPI_STATUS_IGNORE, ierr)
    call check_class(ierr, MPIX_ERR_PROC_FAILED, 'failure')
  end subroutine lose_last

  ! A receive from any rank waits for the living ones only after the acknowledgment.
  subroutine acknowledge()
    integer, asynchronous :: value
    integer :: n, flag
    type(MPI_Request) :: request
    type(MPI_Group) :: group
    call MPI_Irecv(value, 1, MPI_INTEGER, MPI_ANY_SOURCE, 4, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check_class(ierr, MPIX_ERR_PROC_FAILED_PENDING, 'pending')
    call MPIX_Comm_get_failed(comm, group)
    call MPI_Group_size(group, n)
    call check(n == 1, 'get_failed')
    call MPI_Group_free(group)
    call MPIX_Comm_ack_failed(comm, 1, n)
    call check(n == 1, 'ack_failed')
    call MPIX_Comm_failure_ack(comm)
    call MPIX_Comm_failure_get_acked(comm, group)
    call MPI_Group_size(group, n)
    call check(n == 1, 'failure_get_acked')
    call MPI_Group_free(group)
    call MPI_Send(17, 1, MPI_INTEGER, rank, 4, comm)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(ierr == MPI_SUCCESS .and. value == 17, 'goes on')
    flag = merge(5, 7, rank == 0)
    call MPIX_Comm_agree(comm, flag, ierr)
    call check(ierr == MPI_SUCCESS .and. flag == 5, 'agree')
  end subroutine acknowledge

  ! A substitute gets the rank of the dead process, the last one.
  subroutine join()
    type(MPI_Comm) :: whole
    integer :: total
    call MPIX_Comm_replace(MPI_COMM_NULL, ' ', MPI_ARGV_NULL, MPI_INFO_NULL, whole)
    call MPI_Comm_rank(whole, rank)
    call MPI_Comm_size(whole, size)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, whole)
    call check(rank == size - 1 .and. total == size .and. command_argument_count() == 2, 'substitute')
    call MPI_Comm_free(whole)
    call MPI_Finalize(ierr)
    stop
  end subroutine join

  subroutine go_on()
    integer :: total
    type(MPI_Comm) :: living, whole
    character(len=1000) :: command
    call MPIX_Comm_shrink(comm, living)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, living)
    call check(total == size - 1, 'living')
    call get_command_argument(0, command)
    call MPIX_Comm_replace(comm, command, [character(len=8) :: 'an', 'argument', ' '], MPI_INFO_NULL, whole)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, whole)
    call check(total == size, 'replaced')
    call MPI_Comm_free(whole)
    if (rank == 0) print *, 'the survivors went on'
    call MPI_Comm_free(living)
    call MPI_Comm_free(comm)
  end subroutine go_on
end program ulfm_modern
