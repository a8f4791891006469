! Tests module mpi_f08: typed handles, omitted ierror arguments, and the program's procedures as callbacks.
module modern_procedures
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: copies = 0, removals = 0, cancels = 0, freed = 0
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print *, 'FAIL ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

  subroutine multiply(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call check(datatype == MPI_INTEGER, 'type of the operation')
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = in * inout
  end subroutine multiply

  subroutine copy(comm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    call check(comm == MPI_COMM_SELF .and. comm_keyval /= MPI_KEYVAL_INVALID, 'copy')
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    copies = copies + 1
    ierror = MPI_SUCCESS
  end subroutine copy

  subroutine remove(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: attribute_val, extra_state
    call check(comm /= MPI_COMM_NULL .and. comm_keyval > 0 .and. attribute_val > extra_state, 'remove')
    removals = removals + 1
    ierror = MPI_SUCCESS
  end subroutine remove

  subroutine query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_BYTE, int(extra_state))
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = MPI_UNDEFINED
    status%MPI_TAG = 12
    ierror = MPI_SUCCESS
  end subroutine query

  subroutine release(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = freed + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine release

  subroutine cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (.not. complete) cancels = cancels + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine cancel

  subroutine handler(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    call check(comm == MPI_COMM_SELF .and. error_code /= MPI_SUCCESS, 'handler')
    error_code = MPI_SUCCESS
    freed = freed + 1000
  end subroutine handler
end module modern_procedures

program modern
  use mpi_f08
  use modern_procedures
  implicit none
  integer :: rank, size

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call messages()
  call operations()
  call attributes()
  call generalized()
  call errors()
  call buffers()
  call MPI_Finalize()

contains

  subroutine messages()
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: found(2), one
    type(MPI_Message) :: message
    integer :: sent(3), got(3), count, place
    logical :: flag
    sent = rank
    call MPI_Irecv(got, 3, MPI_INTEGER, mod(rank + size - 1, size), 4, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(sent, 3, MPI_INTEGER, mod(rank + 1, size), 4, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, found)
    call check(found(1)%MPI_SOURCE == mod(rank + size - 1, size) .and. found(1)%MPI_TAG == 4, 'status')
    call check(all(got == found(1)%MPI_SOURCE), 'data')
    call check(requests(1) == MPI_REQUEST_NULL .and. .not. requests(2) /= MPI_REQUEST_NULL, 'requests')
    call MPI_Isend(sent, 1, MPI_INTEGER, rank, 9, MPI_COMM_WORLD, requests(1))
    call MPI_Mprobe(rank, 9, MPI_COMM_WORLD, message, one)
    call MPI_Get_count(one, MPI_INTEGER, count)
    call check(count == 1 .and. message /= MPI_MESSAGE_NULL, 'mprobe')
    call MPI_Mrecv(got, 1, MPI_INTEGER, message, MPI_STATUS_IGNORE)
    call check(message == MPI_MESSAGE_NULL .and. got(1) == rank, 'mrecv')
    call MPI_Waitany(2, requests, place, MPI_STATUS_IGNORE)
    call check(place == 1, 'waitany')
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE)
    call check(flag, 'testall')
  end subroutine messages

  subroutine operations()
    type(MPI_Op) :: op
    integer :: value(1)
    logical :: commutes
    call MPI_Op_create(multiply, .true., op)
    call MPI_Op_commutative(op, commutes)
    call check(commutes, 'commutes')
    value = 2
    call MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(value(1) == 2**size, 'operation')
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 'freed operation')
  end subroutine operations

  subroutine attributes()
    integer :: keyval
    type(MPI_Comm) :: other
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Comm_create_keyval(copy, remove, keyval, 3_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, 40_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_SELF, other)
    call MPI_Comm_get_attr(other, keyval, value, flag)
    call check(flag .and. value == 43 .and. copies == 1, 'copied')
    call MPI_Comm_free(other)
    call MPI_Comm_set_attr(MPI_COMM_SELF, keyval, 41_MPI_ADDRESS_KIND)
    call check(removals == 2, 'removals')
    call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval)
    call check(removals == 3, 'the last one')
    call MPI_Comm_free_keyval(keyval)
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND)
    call MPI_Comm_free_keyval(keyval)
  end subroutine attributes

  subroutine generalized()
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer(kind=MPI_ADDRESS_KIND) :: state
    integer :: count
    logical :: flag
    state = 5
    call MPI_Grequest_start(query, release, cancel, state, request)
    call MPI_Test(request, flag, status)
    call check(.not. flag, 'not yet')
    call MPI_Cancel(request)
    call check(cancels == 5, 'cancel')
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_elements(status, MPI_BYTE, count)
    call check(count == 5 .and. status%MPI_TAG == 12 .and. freed == 5, 'generalized request')
  end subroutine generalized

  subroutine errors()
    type(MPI_Errhandler) :: errhandler, before
    integer :: ierror, class
    call MPI_Comm_get_errhandler(MPI_COMM_SELF, before)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Barrier(MPI_COMM_NULL, ierror=ierror)
    call MPI_Error_class(ierror, class)
    call check(class == MPI_ERR_COMM, 'class')
    call MPI_Comm_create_errhandler(handler, errhandler)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler)
    call MPI_Errhandler_free(errhandler)
    freed = 0
    call MPI_Send(rank, 1, MPI_INTEGER, 17, 0, MPI_COMM_SELF)
    call check(freed == 1000, 'handler was called')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, before)
  end subroutine errors

  subroutine buffers()
    character, target :: space(MPI_BSEND_OVERHEAD + 64)
    type(c_ptr) :: place
    integer(kind=MPI_ADDRESS_KIND) :: address
    integer :: bytes
    call MPI_Buffer_attach(space, MPI_BSEND_OVERHEAD + 64)
    call MPI_Buffer_detach(place, bytes)
    call check(transfer(place, address) == transfer(c_loc(space), address) .and. bytes == MPI_BSEND_OVERHEAD + 64, 'buffer')
  end subroutine buffers
end program modern
