! Tests module mpi_f08: array sections with gaps in calls of all kinds. Compilers that pass no descriptors pass copies, which suffice for
! blocking calls only; the non-blocking calls are then left out, as the standard allows.
module sections_procedures
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, size, left, right
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print *, 'FAIL ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

  ! Returns a number that identifies process `of` and element `place`.
  integer function number(of, place)
    integer, intent(in) :: of, place
    number = 1000 * of + place
  end function number

  subroutine fill(array)
    integer, intent(out) :: array(:, :)
    integer :: i, j
    do j = 1, ubound(array, 2)
      do i = 1, ubound(array, 1)
        array(i, j) = number(rank, 10 * i + j)
      end do
    end do
  end subroutine fill
end module sections_procedures

program sections
  use mpi_f08
  use sections_procedures
  implicit none

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  left = mod(rank + size - 1, size)
  right = mod(rank + 1, size)
  call blocking()
  call blocking_collectives()
  call places()
  if (MPI_SUBARRAYS_SUPPORTED) then
    call messages()
    call shapes()
    call parts_of_elements()
    call derived_types()
    call prepared()
    call partitions()
    call accesses()
    call collectives()
    call prepared_collectives()
    call too_much()
  end if
  call MPI_Finalize()

contains

  subroutine blocking()
    integer :: a(6, 5), b(6, 5), packed(6), place
    call fill(a)
    b = 0
    call MPI_Sendrecv(a(1:5:2, 2:4), 9, MPI_INTEGER, right, 1, b(6:2:-2, 1:3), 9, MPI_INTEGER, left, 1, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(b(6:2:-2, 1:3) == a(1:5:2, 2:4) - 1000 * (rank - left)), 'sendrecv')
    call check(all(b(1:5:2, :) == 0) .and. all(b(:, 4:) == 0), 'gaps of sendrecv')
    place = 0
    call MPI_Pack(a(2, :), 5, MPI_INTEGER, packed(1:5), 20, place, MPI_COMM_WORLD)
    call check(place == 20 .and. all(packed(1:5) == a(2, :)), 'pack')
    place = 0
    b = 0
    call MPI_Unpack(packed, 20, place, b(3, :), 5, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(b(3, :) == a(2, :)) .and. all(b(4, :) == 0), 'unpack')
    call MPI_Reduce_local(a(1, :), b(3, :), 5, MPI_INTEGER, MPI_SUM)
    call check(all(b(3, :) == a(2, :) + a(1, :)), 'reduce_local')
  end subroutine blocking

  subroutine blocking_collectives()
    integer, target :: a(4, 3)
    integer :: all_of(8, 5), i, place(1)
    integer, pointer :: none(:)
    call fill(a)
    all_of = -1
    call MPI_Gather(a(2, :), 3, MPI_INTEGER, all_of(2:8:2, 1:5:2), 3, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) then
      do i = 0, size - 1
        call check(at(all_of(2:8:2, 1:5:2), 3 * i + 1) == number(i, 21), 'gather')
      end do
      call check(all(all_of(1:7:2, :) == -1), 'gaps of gather')
    end if
    call MPI_Allreduce(MPI_IN_PLACE, a(1:3:2, :), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(a(3, 2) == 500 * size * (size - 1) + size * 32, 'allreduce')
    call check(a(2, 2) == number(rank, 22), 'gaps of allreduce')
    ! Receive buffers that are not significant may be null pointers, even if the pointer had a shape with gaps before.
    none => a(1, :)
    if (rank /= 0) nullify (none)
    if (rank == 0) allocate (none(size))
    call MPI_Gather(rank, 1, MPI_INTEGER, none, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) then
      call check(all(none == [(i, i = 0, size - 1)]), 'gather to nothing')
      deallocate (none)
    end if
    place = 7
    call MPI_Bcast(place(1), 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call check(place(1) == 7, 'bcast')
  end subroutine blocking_collectives

  ! Returns element number `place` of an array, in the order of its elements.
  integer function at(array, place)
    integer, intent(in) :: array(:, :), place
    at = array(mod(place - 1, ubound(array, 1)) + 1, (place - 1) / ubound(array, 1) + 1)
  end function at

  ! Tests buffers without a shape, addresses relative to MPI_BOTTOM, and empty sections.
  subroutine places()
    integer :: a(3, 4), got(3), lengths(1)
    integer(kind=MPI_ADDRESS_KIND) :: address(1), other
    type(MPI_Datatype) :: type
    call fill(a)
    call of_any_size(a, 3)
    call of_no_shape(a(2, 2))
    call MPI_Get_address(a(1, 2), address(1))
    if (MPI_SUBARRAYS_SUPPORTED) then
      call MPI_Get_address(a(1:3:2, 2:3), other)
      call check(address(1) == other, 'address')
    end if
    lengths = 3
    call MPI_Type_create_hindexed(1, lengths, address, MPI_INTEGER, type)
    call MPI_Type_commit(type)
    call MPI_Sendrecv(MPI_BOTTOM, 1, type, rank, 1, got, 3, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(got == a(:, 2)), 'MPI_BOTTOM')
    call MPI_Type_free(type)
    call MPI_Sendrecv(a(3:2, :), 0, MPI_INTEGER, rank, 1, got(1:0), 0, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine places

  subroutine of_any_size(a, rows)
    integer, intent(in) :: rows
    integer, intent(in) :: a(rows, *)
    integer :: got(6)
    call MPI_Sendrecv(a, 6, MPI_INTEGER, rank, 2, got, 6, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(got(4) == a(1, 2), 'assumed size')
  end subroutine of_any_size

  subroutine of_no_shape(value)
    integer, intent(in) :: value
    integer :: got
    call MPI_Sendrecv(value, 1, MPI_INTEGER, rank, 2, got, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(got == value, 'scalar')
  end subroutine of_no_shape

  subroutine messages()
    integer, asynchronous :: a(6, 5), b(6, 5)
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: found(2)
    integer :: count
    call fill(a)
    b = 0
    call MPI_Irecv(b(2, :), 5, MPI_INTEGER, left, 3, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(4, 5:1:-1), 5, MPI_INTEGER, right, 3, MPI_COMM_WORLD, requests(2))
    b(1, :) = 8  ! not part of the receive buffer
    call MPI_Waitall(2, requests, found)
    call MPI_Get_count(found(1), MPI_INTEGER, count)
    call check(count == 5 .and. all(b(2, :) == a(4, 5:1:-1) - 1000 * (rank - left)), 'irecv')
    call check(all(b(1, :) == 8) .and. all(b(3:, :) == 0), 'gaps of irecv')
    ! Sends only the first 7 elements of a section; the receive has room for more.
    b = 0
    call MPI_Irecv(b(1:5:2, ::2), 9_MPI_COUNT_KIND, MPI_INTEGER, left, 4, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(2:6:2, 2:5), 7, MPI_INTEGER, right, 4, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, found)
    call MPI_Get_count(found(1), MPI_INTEGER, count)
    call check(count == 7 .and. all(b(1:5:2, 1:3:2) == a(2:6:2, 2:3) - 1000 * (rank - left)), 'a part')
    call check(b(1, 5) == a(2, 4) - 1000 * (rank - left) .and. b(3, 5) == 0, 'its end')
    call MPI_Isendrecv_replace(a(3, :), 5, MPI_INTEGER, right, 5, left, 5, MPI_COMM_WORLD, requests(1))
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call check(a(3, 2) == number(left, 32) .and. a(2, 2) == number(rank, 22), 'isendrecv_replace')
  end subroutine messages

  ! Tests sections of arrays with many dimensions, of characters, of components and through pointers.
  subroutine shapes()
    type pair
      sequence
      integer :: first
      double precision :: second
    end type pair
    integer, asynchronous :: deep(4, 3, 5, 2), got(24)
    integer :: wanted(2, 2, 3, 2)
    type(pair), asynchronous :: pairs(5), others(5)
    character(len=6), asynchronous :: words(4), short(4)
    integer, pointer, asynchronous :: some(:)
    integer, target :: numbers(10)
    integer(kind=MPI_ADDRESS_KIND) :: address, other
    type(MPI_Request) :: requests(2)
    integer :: i
    deep = reshape([(number(rank, i), i = 1, 120)], [4, 3, 5, 2])
    wanted = deep(1:3:2, 2:3, 5:1:-2, :)
    call MPI_Isend(deep(1:3:2, 2:3, 5:1:-2, :), 24, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Recv(got, 24, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call check(all(got == reshape(wanted, [24])), 'four dimensions')
    numbers = [(i, i = 1, 10)]
    some => numbers(9:1:-4)
    call MPI_Isend(some, 3, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Recv(got, 3, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
    call check(all(got(1:3) == [9, 5, 1]), 'pointer')
    ! For procedures without bind(C), as MPICH's, gfortran 12 passes copies of components and substrings: not tested then.
    others = pair(0, 0d0)
    call MPI_Get_address(others(1)%second, address)
    call MPI_Get_address(others%second, other)
    if (address /= other) return
    do i = 1, 5
      pairs(i) = pair(i, 10d0 * i)
    end do
    call MPI_Irecv(others%second, 5, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(pairs%second, 5, MPI_DOUBLE_PRECISION, rank, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(others%second == pairs%second) .and. all(others%first == 0), 'components')
    words = ['abcdef', 'ghijkl', 'mnopqr', 'stuvwx']
    short = '------'
    call MPI_Irecv(short(1:4:3)(3:4), 4, MPI_CHARACTER, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(words(2:3)(1:2), 4, MPI_CHARACTER, rank, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(short(1) == '--gh--' .and. short(4) == '--mn--' .and. short(2) == '------', 'characters')
  end subroutine shapes

  ! Tests datatypes smaller or larger than an array element, and messages that end within an element.
  subroutine parts_of_elements()
    double precision, asynchronous :: a(7), b(7)
    type(MPI_Request) :: requests(2)
    type(MPI_Datatype) :: three
    integer :: i
    a = [(1d0 * i, i = 1, 7)]
    b = 0
    call MPI_Irecv(b(7:1:-2), 32, MPI_BYTE, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(1:7:2), 32, MPI_BYTE, rank, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(7:1:-2) == a(1:7:2)) .and. all(b(2:6:2) == 0), 'bytes')
    b = 0
    call MPI_Irecv(b(::3), 20, MPI_BYTE, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(2:6:2), 20, MPI_BYTE, rank, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(1:4:3) == a(2:4:2)) .and. b(7) /= a(6), 'half an element')
    call MPI_Type_contiguous(3, MPI_DOUBLE_PRECISION, three)
    call MPI_Type_commit(three)
    b = 0
    call MPI_Irecv(b(1:5:2), 1, three, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(7:2:-2), 1, three, rank, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Type_free(three)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b == [7, 0, 5, 0, 3, 0, 0]), 'a type of three')
  end subroutine parts_of_elements

  ! Tests datatypes with gaps on array sections that also have gaps.
  subroutine derived_types()
    integer, asynchronous :: a(20), b(20)
    complex, asynchronous :: c(6), d(6)
    type(MPI_Datatype) :: every_second, both
    type(MPI_Request) :: requests(2)
    integer :: i
    a = [(i, i = 1, 20)]
    b = 0
    call MPI_Type_vector(2, 2, 3, MPI_INTEGER, every_second)  ! elements 1, 2, 4, 5 of each 5
    call MPI_Type_commit(every_second)
    call MPI_Irecv(b(20:1:-2), 2, every_second, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(a(1:20:2), 2, every_second, rank, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Type_free(every_second)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(20:2:-2) == [1, 3, 0, 7, 9, 11, 13, 0, 17, 19]) .and. all(b(1::2) == 0), 'a vector of a section')
    c = [(cmplx(i, -i), i = 1, 6)]
    d = 0
    ! MPI_REAL is half an element of a complex array.
    call MPI_Type_contiguous(2, MPI_REAL, both)
    call MPI_Type_commit(both)
    call MPI_Irecv(d(::2), 3, both, rank, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(c(2::2), 6, MPI_REAL, rank, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(d(::2) == c(2::2)) .and. all(d(2::2) == 0), 'halves of complex numbers')
    call MPI_Type_free(both)
  end subroutine derived_types

  subroutine prepared()
    integer, asynchronous :: a(5, 4), b(5, 4)
    type(MPI_Request) :: requests(2)
    integer :: i
    call MPI_Send_init(a(2, :), 4, MPI_INTEGER, right, 6, MPI_COMM_WORLD, requests(1))
    call MPI_Recv_init(b(1:4:3, 1:2), 4, MPI_INTEGER, left, 6, MPI_COMM_WORLD, requests(2))
    do i = 1, 3
      a = number(rank, i)
      b = 0
      call MPI_Startall(2, requests)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call check(all(b(1:4:3, 1:2) == number(left, i)) .and. all(b(2:3, :) == 0), 'prepared')
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine prepared

  subroutine partitions()
    integer, asynchronous :: a(6, 5), b(6, 5)
    type(MPI_Request) :: requests(2)
    integer :: i
    call fill(a)
    b = 0
    call MPI_Psend_init(a(1:4, :), 5, 4_MPI_COUNT_KIND, MPI_INTEGER, right, 7, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(b(2:6:4, :), 5, 2_MPI_COUNT_KIND, MPI_INTEGER, left, 8, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    call MPI_Request_free(requests(2))
    call MPI_Precv_init(b(2:5, :), 5, 4_MPI_COUNT_KIND, MPI_INTEGER, left, 7, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    call MPI_Startall(2, requests)
    do i = 4, 0, -1
      call MPI_Pready(i, requests(1))
    end do
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(all(b(2:5, :) == a(1:4, :) - 1000 * (rank - left)) .and. all(b(1, :) == 0) .and. all(b(6, :) == 0), 'partitions')
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine partitions

  subroutine accesses()
    integer, asynchronous :: window(30), a(6, 5), old(6, 5)
    integer :: value
    type(MPI_Win) :: win
    type(MPI_Request) :: request
    call fill(a)
    window = 0
    old = -1
    call MPI_Win_create(window, 120_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_fence(0, win)
    call MPI_Put(a(2, :), 5, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win)
    call MPI_Accumulate(a(1:5:2, 1:2), 6, MPI_INTEGER, right, 10_MPI_ADDRESS_KIND, 6, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    call check(all(window(1:5) == a(2, :) - 1000 * (rank - left)), 'put')
    call check(window(12) == number(left, 31) .and. window(14) == number(left, 12), 'accumulate')
    call MPI_Get(old(6, :), 5, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(all(old(6, :) == a(2, :)) .and. all(old(:5, :) == -1), 'get')
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win)
    call MPI_Rget_accumulate(a(4, :), 5, MPI_INTEGER, old(1, 5:1:-1), 5, MPI_INTEGER, right, 0_MPI_ADDRESS_KIND, 5, MPI_INTEGER, &
      MPI_REPLACE, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Fetch_and_op(a(6, 5), value, MPI_INTEGER, right, 20_MPI_ADDRESS_KIND, MPI_SUM, win)
    call MPI_Win_unlock(right, win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call check(all(old(1, 5:1:-1) == a(2, :)) .and. value == 0, 'get_accumulate')
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)
    call check(all(window(1:5) == a(4, :) - 1000 * (rank - left)) .and. window(21) == number(left, 65), 'replaced')
    call MPI_Win_unlock(rank, win)
    call MPI_Win_free(win)
  end subroutine accesses

  subroutine collectives()
    integer, asynchronous :: a(4, 3), sums(8, 3), all_of(3, 12), sent(2, 8), got(2, 8)
    type(MPI_Request) :: requests(4)
    integer :: i, counts(4), places_of(4)
    logical :: over
    call fill(a)
    sums = -1
    all_of = -1
    sent = rank
    got = -1
    sent(2, :) = [(number(rank, i), i = 1, 8)]
    counts = 2
    places_of = [6, 4, 2, 0]
    call MPI_Iallreduce(a(1:3:2, :), sums(2:4:2, 1:3), 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Iallgather(a(4, :), 3, MPI_INTEGER, all_of(1:3:2, 1:12:2), 3, MPI_INTEGER, MPI_COMM_WORLD, requests(2))
    call MPI_Ialltoallv(sent(2, :), counts, places_of, MPI_INTEGER, got(2, :), counts, places_of, &
      MPI_INTEGER, MPI_COMM_WORLD, requests(3))
    call MPI_Ibcast(sums(8, :), 3, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(4))
    all_of(2, :) = 8  ! not part of any buffer
    do
      call MPI_Testall(4, requests, over, MPI_STATUSES_IGNORE)
      if (over) exit
    end do
    call check(sums(4, 2) == 500 * size * (size - 1) + size * 32 .and. all(sums(1:7:2, :) == -1), 'iallreduce')
    do i = 0, size - 1
      call check(at(all_of(1:3:2, 1:12:2), 3 * i + 2) == number(i, 42), 'iallgather')
      call check(all(got(2, 7 - 2 * i:8 - 2 * i) == [number(i, 7 - 2 * rank), number(i, 8 - 2 * rank)]), 'ialltoallv')
    end do
    call check(all(all_of(2, :) == 8) .and. all(got(1, :) == -1), 'gaps of collectives')
    ! A broadcast must complete although its request is freed at once.
    sums = rank
    call MPI_Ibcast(sums(1, :), 3, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(1))
    call MPI_Request_free(requests(1))
    call MPI_Barrier(MPI_COMM_WORLD)
    do while (.not. all(sums(1, :) == 0))
      call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, over, MPI_STATUS_IGNORE)
    end do
    call check(all(sums(2:, :) == rank), 'one that was freed')
  end subroutine collectives

  subroutine prepared_collectives()
    integer, asynchronous :: a(4, 3), sums(8, 3)
    type(MPI_Request) :: request
    integer :: i
    call MPI_Allreduce_init(a(1:3:2, :), sums(2:4:2, 1:3), 6, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, request)
    do i = 1, 3
      a = number(rank, i)
      sums = -1
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check(all(sums(2:4:2, :) == number(size - 1, i)) .and. all(sums(1:7:2, :) == -1), 'allreduce_init')
    end do
    call MPI_Request_free(request)
  end subroutine prepared_collectives

  ! Counts beyond the section, and sections with gaps as attached buffer or window, must return an error.
  subroutine too_much()
    integer, asynchronous :: a(10)
    type(MPI_Request) :: request
    type(MPI_Win) :: win
    type(MPI_Errhandler) :: before
    integer :: ierror, class
    a = 1
    call MPI_Comm_get_errhandler(MPI_COMM_SELF, before)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Isend(a(1:10:2), 6, MPI_INTEGER, 0, 0, MPI_COMM_SELF, request, ierror)
    call MPI_Error_class(ierror, class)
    call check(class == MPI_ERR_COUNT, 'too many')
    call MPI_Buffer_attach(a(1:10:2), 20, ierror)
    call MPI_Error_class(ierror, class)
    call check(class == MPI_ERR_BUFFER, 'a buffer with gaps')
    call MPI_Win_create(a(1:10:2), 20_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_SELF, win, ierror)
    call MPI_Error_class(ierror, class)
    call check(class == MPI_ERR_BUFFER, 'a window with gaps')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, before)
  end subroutine too_much
end program sections
