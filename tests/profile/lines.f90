program lines
    implicit none
    include 'mpif.h'
    integer :: i, error
    call MPI_Init(error)
    do i = 1, 5
        call sum()
    end do
    call MPI_Finalize(error)
contains
    subroutine sum()
        integer :: mine, all
        mine = 1
        call MPI_Allreduce(mine, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)  ! reduction
    end subroutine
end program
