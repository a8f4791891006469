! Half the round trip of a message of 8 bytes between two processes, in nanoseconds: the least and the median of 20 turns. With -DOLD it uses
! module mpi, otherwise mpi_f08. With -DCOLUMN the message is one row of an array, which has gaps.
program latency
#ifdef OLD
  use mpi
#else
  use mpi_f08
#endif
  implicit none
  integer, parameter :: turns = 20, trips = 200000
  integer :: rank, turn, i, ierror
  double precision :: begun, times(turns)
#ifdef COLUMN
#define MESSAGE message(2, :)
  integer :: message(4, 2)
#else
#define MESSAGE message
  integer :: message(2)
#endif

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  message = rank
  do turn = 1, turns
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    begun = MPI_Wtime()
    do i = 1, trips
      if (rank == 0) then
        call MPI_Send(MESSAGE, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, ierror)
        call MPI_Recv(MESSAGE, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      else
        call MPI_Recv(MESSAGE, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
        call MPI_Send(MESSAGE, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, ierror)
      end if
    end do
    times(turn) = (MPI_Wtime() - begun) / (2d0 * trips) * 1d9
  end do
  do turn = 2, turns  ! sorts the times
    do i = turn, 2, -1
      if (times(i) < times(i - 1)) times(i - 1:i) = times(i:i - 1:-1)
    end do
  end do
  if (rank == 0) print '(f8.1, f8.1)', times(1), times(turns / 2)
  call MPI_Finalize(ierror)
end program latency
