! Tests module mpi_f08: features of MPI 4, large counts, sessions, and conversions between the two kinds of statuses.
module recent_procedures
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print *, 'FAIL ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

  subroutine multiply_many(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(kind=MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call check(datatype == MPI_INTEGER, 'type of the large operation')
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = in * inout
  end subroutine multiply_many
end module recent_procedures

program recent
  use mpi_f08
  use recent_procedures
  implicit none
  integer :: rank, size

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call large_counts()
  call operations()
  call texts()
  call statuses()
  call sessions()
  call MPI_Finalize()

contains

  subroutine large_counts()
    integer(kind=MPI_COUNT_KIND) :: many, count
    integer :: sent(5), got(5), small
    type(MPI_Status) :: status
    type(MPI_Datatype) :: type
    many = 5
    sent = [1, 2, 3, 4, 5]
    call MPI_Sendrecv(sent, many, MPI_INTEGER, rank, 1, got, many, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check(count == 5 .and. all(got == sent), 'large counts')
    call MPI_Type_contiguous(2_MPI_COUNT_KIND**32, MPI_BYTE, type)
    call MPI_Type_size(type, count)
    call check(count == 2_MPI_COUNT_KIND**32, 'large type')
    call MPI_Type_size(type, small)
    call check(small == MPI_UNDEFINED, 'large type, small count')
    call MPI_Type_free(type)
    call check(type == MPI_DATATYPE_NULL, 'freed')
  end subroutine large_counts

  subroutine operations()
    type(MPI_Op) :: op
    integer :: value(1)
    call MPI_Op_create_c(multiply_many, .false., op)
    value = 3
    call MPI_Allreduce(MPI_IN_PLACE, value, 1_MPI_COUNT_KIND, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(value(1) == 3**size, 'large operation')
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 'freed operation')
  end subroutine operations

  ! Lengths of info values must not count a terminating null character.
  subroutine texts()
    type(MPI_Info) :: info
    character(len=20) :: value
    integer :: length
    logical :: flag
    call MPI_Info_create(info)
    call MPI_Info_set(info, ' key', 'some value ')
    length = 0
    value = 'untouched'
    call MPI_Info_get_string(info, 'key', length, value, flag)
    call check(flag .and. length == 10 .and. value == 'untouched', 'length alone')
    call MPI_Info_get_string(info, 'key', length, value, flag)
    call check(flag .and. length == 10 .and. value == 'some value', 'value')
    call MPI_Info_free(info)
  end subroutine texts

  subroutine statuses()
    type(MPI_Status) :: modern_one, again
    integer :: old(MPI_STATUS_SIZE), count
    call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 77, count, 1, MPI_INTEGER, rank, 77, MPI_COMM_WORLD, modern_one)
    call MPI_Status_f082f(modern_one, old)
    call check(old(MPI_TAG) == 77 .and. old(MPI_SOURCE) == rank, 'to integers')
    call MPI_Status_f2f08(old, again)
    call MPI_Get_count(again, MPI_INTEGER, count)
    call check(count == 1 .and. again%MPI_TAG == 77, 'and back')
  end subroutine statuses

  subroutine sessions()
    type(MPI_Session) :: session
    type(MPI_Group) :: group
    character(len=30) :: name
    integer :: count, length, members
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, count)
    call check(count >= 2, 'process sets')
    length = 0
    call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name)
    call check(length == len('mpi://WORLD') .or. length == len('mpi://SELF'), 'length of a name')
    length = len(name)
    call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name)
    call check(name == 'mpi://WORLD' .or. name == 'mpi://SELF', 'name')
    call MPI_Group_from_session_pset(session, 'mpi://WORLD', group)
    call MPI_Group_size(group, members)
    call check(members == size, 'members')
    call MPI_Group_free(group)
    call MPI_Session_finalize(session)
    call check(session == MPI_SESSION_NULL, 'session')
  end subroutine sessions
end program recent
