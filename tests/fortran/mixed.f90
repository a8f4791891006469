! Tests Fortran and C in one program: each must be able to use the other's handles, statuses, attributes and callbacks (MPI 5.0, 19.3).
program mixed
  use mpi
  implicit none
  integer :: rank, ierr, keyval, comm, op, status(MPI_STATUS_SIZE), value, other
  integer(kind=MPI_ADDRESS_KIND) :: attribute
  logical :: flag
  external :: mixed_begin, mixed_check, mixed_status, MPI_Type_extent

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(comm, keyval, 4711_MPI_ADDRESS_KIND, ierr)
  ! C checks the communicator and its attribute, creates an operation and a keyval, and sets an attribute.
  call mixed_begin(comm, keyval, op, other)
  call MPI_Comm_get_attr(comm, other, attribute, flag, ierr)
  if (.not. flag .or. attribute /= 815) call fail('attribute of C')
  value = rank
  call MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INTEGER, op, comm, ierr)
  call mixed_check(comm, value)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 6, value, 1, MPI_INTEGER, rank, 6, comm, status, ierr)
  call mixed_status(status)
  ! MPI 3.0 removed MPI_Type_extent; it must still work.
  call MPI_Type_extent(MPI_DOUBLE_PRECISION, value, ierr)
  if (value /= 8) call fail('extent')
  call MPI_Op_free(op, ierr)
  call MPI_Comm_free(comm, ierr)
  call MPI_Finalize(ierr)

contains

  subroutine fail(what)
    character(len=*), intent(in) :: what
    integer :: error
    print *, 'FAIL ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, error)
  end subroutine fail
end program mixed
