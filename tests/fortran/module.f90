! Tests module mpi: argument checks and overloads of its declarations, windows, and a spawn of no processes. Large counts are not tested.
program module_mpi
  use mpi
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: rank, size, ierr, provided

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, ierr)
  call check(provided == MPI_THREAD_MULTIPLE, 'thread level')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call windows()
  call arrays()
  call graphs()
  call sizes()
  call buffers()
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

  ! The overloads must return addresses as type(c_ptr) and as integers.
  subroutine windows()
    type(c_ptr) :: memory
    integer(kind=MPI_ADDRESS_KIND) :: bytes, place, found
    integer, pointer :: shared(:)
    integer :: window, value, unit
    logical :: flag
    bytes = 16
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window, ierr)
    call c_f_pointer(memory, shared, [4])
    shared = 0
    call MPI_Win_get_attr(window, MPI_WIN_BASE, place, flag, ierr)
    call MPI_Get_address(shared, found, ierr)
    call check(flag .and. place == found, 'base')
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, place, flag, ierr)
    call check(flag .and. place == 16, 'size')
    call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, place, flag, ierr)
    call check(flag .and. place == 4, 'unit')
    call MPI_Win_fence(0, window, ierr)
    value = rank + 1
    call MPI_Put(value, 1, MPI_INTEGER, mod(rank + 1, size), 2_MPI_ADDRESS_KIND, 1, MPI_INTEGER, window, ierr)
    call MPI_Win_fence(0, window, ierr)
    call check(shared(3) == mod(rank + size - 1, size) + 1, 'put')
    call MPI_Win_free(window, ierr)
    call MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_SELF, place, window, ierr)
    call MPI_Win_shared_query(window, 0, bytes, unit, found, ierr)
    call check(place == found .and. bytes >= 16 .and. unit == 1, 'shared_query')
    call MPI_Win_free(window, ierr)
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, memory, ierr)
    call c_f_pointer(memory, shared, [4])
    shared = 7
    call MPI_Free_mem(shared, ierr)
    call check(MPI_Aint_diff(MPI_Aint_add(place, 24_MPI_ADDRESS_KIND), place) == 24, 'address arithmetic')
  end subroutine windows

  ! Blocking calls must accept array sections, which are copied, and buffers of any rank and type.
  subroutine arrays()
    real :: matrix(4, 4), got(2, 2)
    character(len=5) :: word
    integer :: i
    matrix = reshape([(real(i), i = 1, 16)], [4, 4])
    call MPI_Sendrecv(matrix(2:3, 2:3), 4, MPI_REAL, rank, 0, got, 4, MPI_REAL, rank, 0, MPI_COMM_WORLD, &
         MPI_STATUS_IGNORE, ierr)
    call check(all(got == matrix(2:3, 2:3)), 'section')
    word = 'hello'
    if (rank /= 0) word = ' '
    call MPI_Bcast(word, 5, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
    call check(word == 'hello', 'characters')
  end subroutine arrays

  subroutine graphs()
    integer :: graph, indegree, outdegree, next(1), before(1)
    logical :: weighted
    next(1) = mod(rank + 1, size)
    before(1) = mod(rank + size - 1, size)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, before, MPI_UNWEIGHTED, 1, next, MPI_UNWEIGHTED, MPI_INFO_NULL, &
         .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, indegree, outdegree, weighted, ierr)
    call check(indegree == 1 .and. outdegree == 1 .and. .not. weighted, 'neighbours')
    call MPI_Comm_free(graph, ierr)
  end subroutine graphs

  subroutine sizes()
    integer :: bytes
    double precision :: number
    complex :: pair
    call MPI_Sizeof(number, bytes, ierr)
    call check(bytes == 8, 'double precision')
    call MPI_Sizeof(pair, bytes, ierr)
    call check(bytes == 8, 'complex')
    call MPI_Sizeof([1, 2], bytes, ierr)
    call check(bytes == 4, 'integers')
  end subroutine sizes

  ! MPI_Buffer_detach cannot return the buffer's address in this interface; it must return the size.
  subroutine buffers()
    character :: space(1000 + MPI_BSEND_OVERHEAD)
    integer :: bytes, value, status(MPI_STATUS_SIZE)
    call MPI_Buffer_attach(space, 1000 + MPI_BSEND_OVERHEAD, ierr)
    call MPI_Bsend(rank, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, ierr)
    call MPI_Recv(value, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, status, ierr)
    call MPI_Buffer_detach(space, bytes, ierr)
    call check(bytes == 1000 + MPI_BSEND_OVERHEAD .and. value == rank, 'buffer')
  end subroutine buffers
end program module_mpi
