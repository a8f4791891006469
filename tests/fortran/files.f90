! Files from Fortran (mpi_f08): access, errors, and a data representation of the program.
module file_procedures
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: digits_wide = 10
  integer :: reads = 0, writes = 0, handled = 0
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    print *, 'FAIL ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

  subroutine extent_of(datatype, extent, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
    call check(datatype == MPI_INTEGER .and. extra_state == 99, 'arguments of the extent function')
    extent = digits_wide
    ierror = MPI_SUCCESS
  end subroutine extent_of

  subroutine write_digits(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: numbers(:)
    character(len=1), pointer :: texts(:)
    character(len=digits_wide) :: text
    integer :: i, j
    call check(datatype == MPI_INTEGER .and. extra_state == 99, 'arguments of the write function')
    call c_f_pointer(userbuf, numbers, [int(position) + count])
    call c_f_pointer(filebuf, texts, [count * digits_wide])
    do i = 1, count
      write (text, '(i10)') numbers(int(position) + i)
      do j = 1, digits_wide
        texts((i - 1) * digits_wide + j) = text(j:j)
      end do
    end do
    writes = writes + 1
    ierror = MPI_SUCCESS
  end subroutine write_digits

  subroutine read_digits(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer, pointer :: numbers(:)
    character(len=1), pointer :: texts(:)
    character(len=digits_wide) :: text
    integer :: i, j
    call check(datatype == MPI_INTEGER .and. extra_state == 99, 'arguments of the read function')
    call c_f_pointer(userbuf, numbers, [int(position) + count])
    call c_f_pointer(filebuf, texts, [count * digits_wide])
    do i = 1, count
      do j = 1, digits_wide
        text(j:j) = texts((i - 1) * digits_wide + j)
      end do
      read (text, '(i10)') numbers(int(position) + i)
    end do
    reads = reads + 1
    ierror = MPI_SUCCESS
  end subroutine read_digits

  subroutine handle(file, error_code)
    type(MPI_File) :: file
    integer :: error_code, class
    call MPI_Error_class(error_code, class)
    call check(file /= MPI_FILE_NULL .and. class == MPI_ERR_ARG, 'arguments of the error handler')
    handled = handled + 1
  end subroutine handle
end module file_procedures

program files
  use mpi_f08
  use file_procedures
  implicit none
  type(MPI_File) :: file
  type(MPI_Status) :: status
  type(MPI_Request) :: request
  type(MPI_Errhandler) :: handler
  type(MPI_Datatype) :: etype, filetype
  integer :: rank, size, code, class, count, numbers(4), back(4), i
  integer(kind=MPI_OFFSET_KIND) :: offset
  character(len=64) :: name
  character(len=MPI_MAX_DATAREP_STRING) :: representation
  character(len=digits_wide) :: text

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  if (rank == 0) write (name, '(a,i0)') '/tmp/starling-tests-fortran-', int(MPI_Wtime() * 1000)
  call MPI_Bcast(name, len(name), MPI_CHARACTER, 0, MPI_COMM_WORLD)
  call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_NO_SUCH_FILE .and. file == MPI_FILE_NULL, 'a file that does not exist')
  call MPI_File_open(MPI_COMM_WORLD, name, ior(ior(MPI_MODE_CREATE, MPI_MODE_RDWR), MPI_MODE_DELETE_ON_CLOSE), MPI_INFO_NULL, &
                     file, code)
  call check(code == MPI_SUCCESS, 'open')

  numbers = [(rank * 10 + i, i = 1, 4)]
  call MPI_File_write_at_all(file, int(rank, MPI_OFFSET_KIND) * 16, numbers, 4, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'write')
  call MPI_Get_count(status, MPI_INTEGER, count)
  call check(count == 4, 'count of the write')
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_File_iread_at(file, int(size - 1 - rank, MPI_OFFSET_KIND) * 16, back, 4, MPI_INTEGER, request)
  call MPI_Wait(request, status)
  call check(all(back == [((size - 1 - rank) * 10 + i, i = 1, 4)]), 'read')
  call MPI_File_get_size(file, offset)
  call check(offset == size * 16, 'size')
  call MPI_File_write_ordered(file, numbers, 4, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS, 'ordered write')
  call MPI_File_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET)
  call MPI_File_read_all_begin(file, back, 4, MPI_INTEGER)
  call MPI_File_read_all_end(file, back, status)
  call check(all(back == [1, 2, 3, 4]), 'split read')

  call MPI_Register_datarep('fortran digits  ', read_digits, write_digits, extent_of, 99_MPI_ADDRESS_KIND, code)
  call check(code == MPI_SUCCESS, 'registration')
  call MPI_Register_datarep('fortran digits', read_digits, write_digits, extent_of, 99_MPI_ADDRESS_KIND, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_DUP_DATAREP, 'second registration')
  call MPI_File_set_view(file, int(rank, MPI_OFFSET_KIND) * 4 * digits_wide, MPI_INTEGER, MPI_INTEGER, 'fortran digits', &
                         MPI_INFO_NULL, code)
  call check(code == MPI_SUCCESS, 'view')
  call MPI_File_get_view(file, offset, etype, filetype, representation)
  call check(representation == 'fortran digits' .and. etype == MPI_INTEGER .and. offset == rank * 4 * digits_wide, 'view')
  call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, numbers, 4, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS .and. writes > 0, 'converted write')
  back = 0
  call MPI_File_read_at(file, 1_MPI_OFFSET_KIND, back, 3, MPI_INTEGER, status, code)
  call check(code == MPI_SUCCESS .and. reads > 0 .and. all(back(1:3) == numbers(2:4)), 'converted read')
  call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_CHARACTER, MPI_CHARACTER, 'native', MPI_INFO_NULL)
  call MPI_File_read_at(file, int(rank, MPI_OFFSET_KIND) * 4 * digits_wide, text, digits_wide, MPI_CHARACTER, status)
  read (text, '(i10)') count
  call check(count == numbers(1), 'text in the file')

  call MPI_File_create_errhandler(handle, handler)
  call MPI_File_set_errhandler(file, handler)
  call MPI_File_seek(file, -1_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
  call check(handled == 1, 'error handler')
  call MPI_Errhandler_free(handler)
  call MPI_File_close(file)
  call check(file == MPI_FILE_NULL, 'close')
  call MPI_Finalize()
end program files
