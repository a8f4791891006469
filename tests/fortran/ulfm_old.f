C     Tests mpif-ext.h: the functions for failures, in a job that loses
C     its last rank.
      program ulfm
      implicit none
      include 'mpif.h'
      include 'mpif-ext.h'
      integer rank, size, ierr, comm, parent
      integer(kind=MPI_ADDRESS_KIND) value
      logical flag

      call MPI_INIT(ierr)
      call MPI_COMM_GET_PARENT(parent, ierr)
      if (parent .ne. MPI_COMM_NULL) call join()
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPIX_FT, value, flag, ierr)
      call check(flag .and. value .eq. 1, 'MPIX_FT')
      call without_failure(rank, size)
      call revocation(rank, size)
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      call MPI_COMM_SET_ERRHANDLER(comm, MPI_ERRORS_RETURN, ierr)
      call lose_last(comm, rank, size)
      call acknowledge(comm, rank, size)
      call go_on(comm, rank, size)
      call MPI_FINALIZE(ierr)
      end

C     Ends the job if the condition `holds` is false.
      subroutine check(holds, what)
      implicit none
      include 'mpif.h'
      logical holds
      character*(*) what
      integer ierr
      if (holds) return
      print *, 'FAIL ', what
      call MPI_ABORT(MPI_COMM_WORLD, 1, ierr)
      end

C     Ends the job unless `code` is an error of class `wanted`.
      subroutine check_class(code, wanted, what)
      implicit none
      include 'mpif.h'
      integer code, wanted, class, ierr
      character*(*) what
      call MPI_ERROR_CLASS(code, class, ierr)
      if (class .ne. wanted) print *, 'class ', class
      call check(class .eq. wanted, what)
      end

      subroutine without_failure(rank, size)
      implicit none
      include 'mpif.h'
      integer rank, size, ierr, flag, request, comm, n
      flag = 7
      if (rank .eq. 0) flag = 6
      call MPIX_COMM_IAGREE(MPI_COMM_WORLD, flag, request, ierr)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
      call check(flag .eq. 6, 'iagree')
      call MPIX_COMM_ISHRINK(MPI_COMM_WORLD, comm, request, ierr)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
      call MPI_COMM_SIZE(comm, n, ierr)
      call check(n .eq. size, 'ishrink')
      call MPI_COMM_FREE(comm, ierr)
      end

C     Rank 0 revokes a communicator. The barrier ends the creation on all
C     ranks before.
      subroutine revocation(rank, size)
      implicit none
      include 'mpif.h'
      include 'mpif-ext.h'
      integer rank, size, ierr, comm, again, n
      logical flag
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      call MPI_COMM_SET_ERRHANDLER(comm, MPI_ERRORS_RETURN, ierr)
      call MPIX_COMM_IS_REVOKED(comm, flag, ierr)
      call check(.not. flag, 'not revoked yet')
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      if (rank .eq. 0) then
         call MPIX_COMM_REVOKE(comm, ierr)
      else
         call MPI_RECV(n, 1, MPI_INTEGER, 0, 1, comm,
     &        MPI_STATUS_IGNORE, ierr)
         call check_class(ierr, MPIX_ERR_REVOKED, 'revoked')
      end if
      call MPIX_COMM_IS_REVOKED(comm, flag, ierr)
      call check(flag, 'is_revoked')
      call MPIX_COMM_SHRINK(comm, again, ierr)
      call MPI_COMM_SIZE(again, n, ierr)
      call check(n .eq. size, 'shrunk')
      call MPI_COMM_FREE(comm, ierr)
      call MPI_COMM_FREE(again, ierr)
      end

C     The last rank dies when it has a message of each other rank.
      subroutine lose_last(comm, rank, size)
      use, intrinsic :: iso_c_binding, only: c_int
      implicit none
      include 'mpif.h'
      include 'mpif-ext.h'
      integer comm, rank, size, ierr, i, value
      interface
         function raise(number) bind(C)
         import :: c_int
         integer(c_int), value :: number
         integer(c_int) :: raise
         end function raise
      end interface
      value = rank
      if (rank .eq. size - 1) then
         do i = 0, size - 2
            call MPI_RECV(value, 1, MPI_INTEGER, i, 2, comm,
     &           MPI_STATUS_IGNORE, ierr)
         end do
         i = raise(9)
      end if
      call MPI_SEND(value, 1, MPI_INTEGER, size - 1, 2, comm, ierr)
      call MPI_RECV(value, 1, MPI_INTEGER, size - 1, 3, comm,
     &     MPI_STATUS_IGNORE, ierr)
      call check_class(ierr, MPIX_ERR_PROC_FAILED, 'failure')
      end

C     A receive from any rank waits for the living ones only after the
C     acknowledgment.
      subroutine acknowledge(comm, rank, size)
      implicit none
      include 'mpif.h'
      include 'mpif-ext.h'
      integer comm, rank, size, ierr, request, value, n, group, flag
      call MPI_IRECV(value, 1, MPI_INTEGER, MPI_ANY_SOURCE, 4, comm,
     &     request, ierr)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
      call check_class(ierr, MPIX_ERR_PROC_FAILED_PENDING, 'pending')
      call MPIX_COMM_GET_FAILED(comm, group, ierr)
      call MPI_GROUP_SIZE(group, n, ierr)
      call check(n .eq. 1, 'get_failed')
      call MPI_GROUP_FREE(group, ierr)
      call MPIX_COMM_ACK_FAILED(comm, 1, n, ierr)
      call check(n .eq. 1, 'ack_failed')
      call MPIX_COMM_FAILURE_ACK(comm, ierr)
      call MPIX_COMM_FAILURE_GET_ACKED(comm, group, ierr)
      call MPI_GROUP_SIZE(group, n, ierr)
      call check(n .eq. 1, 'failure_get_acked')
      call MPI_GROUP_FREE(group, ierr)
      call MPI_SEND(17, 1, MPI_INTEGER, rank, 4, comm, ierr)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
      call check(ierr .eq. MPI_SUCCESS .and. value .eq. 17, 'goes on')
      flag = 7
      if (rank .eq. 0) flag = 5
      call MPIX_COMM_AGREE(comm, flag, ierr)
      call check(ierr .eq. MPI_SUCCESS .and. flag .eq. 5, 'agree')
      end

C     A substitute gets the rank of the dead process, the last one.
      subroutine join()
      implicit none
      include 'mpif.h'
      integer whole, rank, size, ierr, total
      call MPIX_COMM_REPLACE(MPI_COMM_NULL, ' ', MPI_ARGV_NULL,
     &     MPI_INFO_NULL, whole, ierr)
      call MPI_COMM_RANK(whole, rank, ierr)
      call MPI_COMM_SIZE(whole, size, ierr)
      call MPI_ALLREDUCE(1, total, 1, MPI_INTEGER, MPI_SUM, whole,
     &     ierr)
      call check(rank .eq. size - 1 .and. total .eq. size,
     &     'substitute')
      call MPI_COMM_FREE(whole, ierr)
      call MPI_FINALIZE(ierr)
      stop
      end

      subroutine go_on(comm, rank, size)
      implicit none
      include 'mpif.h'
      integer comm, rank, size, ierr, living, whole, total
      character*1000 command
      call MPIX_COMM_SHRINK(comm, living, ierr)
      call MPI_ALLREDUCE(1, total, 1, MPI_INTEGER, MPI_SUM, living,
     &     ierr)
      call check(total .eq. size - 1, 'living')
      call get_command_argument(0, command)
      call MPIX_COMM_REPLACE(comm, command, MPI_ARGV_NULL,
     &     MPI_INFO_NULL, whole, ierr)
      call MPI_ALLREDUCE(1, total, 1, MPI_INTEGER, MPI_SUM, whole,
     &     ierr)
      call check(total .eq. size, 'replaced')
      call MPI_COMM_FREE(whole, ierr)
      if (rank .eq. 0) print *, 'the survivors went on'
      call MPI_COMM_FREE(living, ierr)
      call MPI_COMM_FREE(comm, ierr)
      end
