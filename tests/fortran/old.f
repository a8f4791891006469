C     Tests mpif.h in fixed form: where it differs from the C interface.
      program old
      implicit none
      include 'mpif.h'
      integer rank, size, ierr

      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, size, ierr)
      call messages(rank, size)
      call completion(rank, size)
      call texts(rank)
      call logicals(rank, size)
      call reductions(rank, size)
      call attributes()
      call types(rank, size)
      call errors()
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

      subroutine messages(rank, size)
      implicit none
      include 'mpif.h'
      integer rank, size, ierr, count, right, left
      integer status(MPI_STATUS_SIZE)
      double precision sent(10), got(10)
      integer i
      right = mod(rank + 1, size)
      left = mod(rank + size - 1, size)
      do i = 1, 10
         sent(i) = rank * 100 + i
         got(i) = -1
      end do
      call MPI_SENDRECV(sent, 10, MPI_DOUBLE_PRECISION, right, 7, got,
     &     10, MPI_DOUBLE_PRECISION, left, MPI_ANY_TAG,
     &     MPI_COMM_WORLD, status, ierr)
      call check(status(MPI_SOURCE) .eq. left, 'source')
      call check(status(MPI_TAG) .eq. 7, 'tag')
      call MPI_GET_COUNT(status, MPI_DOUBLE_PRECISION, count, ierr)
      call check(count .eq. 10, 'count')
      do i = 1, 10
         call check(got(i) .eq. left * 100 + i, 'data')
      end do
      call MPI_SENDRECV_REPLACE(got, 10, MPI_DOUBLE_PRECISION, left, 1,
     &     right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call check(got(3) .eq. rank * 100 + 3, 'came back')
      call check(MPI_WTIME() .gt. 0d0 .and. MPI_WTICK() .gt. 0d0,
     &     'clock')
      end

C     MPI_Waitany and its kin must return positions that begin at 1.
      subroutine completion(rank, size)
      implicit none
      include 'mpif.h'
      integer rank, size, ierr, i, place, count
      integer requests(4), values(4), places(4)
      integer statuses(MPI_STATUS_SIZE, 4), status(MPI_STATUS_SIZE)
      logical seen(4), flag
      do i = 1, 4
         values(i) = 0
         seen(i) = .false.
         call MPI_IRECV(values(i), 1, MPI_INTEGER, rank, i,
     &        MPI_COMM_WORLD, requests(i), ierr)
      end do
      call MPI_SEND(33, 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, ierr)
      call MPI_WAITANY(4, requests, place, status, ierr)
      call check(place .eq. 3 .and. values(3) .eq. 33, 'waitany')
      call check(requests(3) .eq. MPI_REQUEST_NULL, 'request')
      call MPI_TESTANY(4, requests, place, flag, status, ierr)
      call check(.not. flag .and. place .eq. MPI_UNDEFINED, 'testany')
      call MPI_SEND(11, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, ierr)
      call MPI_WAITSOME(4, requests, count, places, statuses, ierr)
      call check(count .eq. 1 .and. places(1) .eq. 1, 'waitsome')
      call check(statuses(MPI_TAG, 1) .eq. 1, 'waitsome status')
      call MPI_SEND(22, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, ierr)
      call MPI_SEND(44, 1, MPI_INTEGER, rank, 4, MPI_COMM_WORLD, ierr)
      call MPI_WAITALL(4, requests, MPI_STATUSES_IGNORE, ierr)
      do i = 1, 4
         call check(values(i) .eq. 11 * i, 'waitall')
      end do
      call MPI_WAITSOME(4, requests, count, places, statuses, ierr)
      call check(count .eq. MPI_UNDEFINED, 'none is left')
      end

      subroutine texts(rank)
      implicit none
      include 'mpif.h'
      integer rank, ierr, length, info, class
      character*(MPI_MAX_PROCESSOR_NAME) name
      character*(MPI_MAX_ERROR_STRING) text
      character*8 short
      character*20 value
      logical flag
      call MPI_GET_PROCESSOR_NAME(name, length, ierr)
      call check(length .gt. 0, 'processor name')
      call check(name(length + 1:) .eq. ' ', 'filled with blanks')
      call MPI_COMM_SET_NAME(MPI_COMM_WORLD, 'a name  ', ierr)
      call MPI_COMM_GET_NAME(MPI_COMM_WORLD, short, length, ierr)
      call check(length .eq. 6 .and. short .eq. 'a name', 'name')
      call MPI_ERROR_STRING(MPI_ERR_RANK, text, length, ierr)
      call check(index(text, 'MPI_ERR_RANK') .eq. 1, 'error string')
      call MPI_ERROR_CLASS(MPI_ERR_RANK, class, ierr)
      call check(class .eq. MPI_ERR_RANK, 'class')
      call MPI_INFO_CREATE(info, ierr)
      call MPI_INFO_SET(info, '  key  ', '  some value ', ierr)
      value = 'untouched'
      call MPI_INFO_GET(info, 'other', 20, value, flag, ierr)
      call check(.not. flag .and. value .eq. 'untouched', 'no key')
      call MPI_INFO_GET(info, 'key', 20, value, flag, ierr)
      call check(flag .and. value .eq. 'some value', 'value')
      call MPI_INFO_GET_VALUELEN(info, 'key ', length, flag, ierr)
      call check(flag .and. length .eq. 10, 'valuelen')
      call MPI_INFO_GET_NTHKEY(info, 0, value, ierr)
      call check(value .eq. 'key', 'nthkey')
      call MPI_INFO_FREE(info, ierr)
      call check(info .eq. MPI_INFO_NULL, 'freed')
      end

      subroutine logicals(rank, size)
      implicit none
      include 'mpif.h'
      integer rank, size, ierr, cart, dims(1), coords(1), where
      logical periods(1), flag
      call MPI_INITIALIZED(flag, ierr)
      call check(flag, 'initialized')
      call MPI_FINALIZED(flag, ierr)
      call check(.not. flag, 'finalized')
      dims(1) = size
      periods(1) = .true.
      call MPI_CART_CREATE(MPI_COMM_WORLD, 1, dims, periods, .false.,
     &     cart, ierr)
      periods(1) = .false.
      call MPI_CART_GET(cart, 1, dims, periods, coords, ierr)
      call check(periods(1) .and. coords(1) .eq. rank, 'cart')
      call MPI_TOPO_TEST(cart, where, ierr)
      call check(where .eq. MPI_CART, 'topology')
      call MPI_IPROBE(MPI_ANY_SOURCE, 99, cart, flag,
     &     MPI_STATUS_IGNORE, ierr)
      call check(.not. flag, 'iprobe')
      call MPI_COMM_COMPARE(cart, MPI_COMM_WORLD, where, ierr)
      call check(where .eq. MPI_CONGRUENT, 'compare')
      call MPI_COMM_FREE(cart, ierr)
      call check(cart .eq. MPI_COMM_NULL, 'freed')
      end

C     A reduction operation: the integer of larger magnitude.
      subroutine larger(in, inout, count, type)
      implicit none
      include 'mpif.h'
      integer count, type, i
      integer in(count), inout(count)
      call check(type .eq. MPI_INTEGER, 'type of the operation')
      do i = 1, count
         if (abs(in(i)) .gt. abs(inout(i))) inout(i) = in(i)
      end do
      end

      subroutine reductions(rank, size)
      implicit none
      include 'mpif.h'
      integer rank, size, ierr, op, mine(2), all(2), request
      external larger
      logical commutes
      mine(1) = -rank - 1
      mine(2) = 1
      call MPI_OP_CREATE(larger, .true., op, ierr)
      call MPI_OP_COMMUTATIVE(op, commutes, ierr)
      call check(commutes, 'commutes')
      call MPI_ALLREDUCE(mine, all, 2, MPI_INTEGER, op,
     &     MPI_COMM_WORLD, ierr)
      call check(all(1) .eq. -size .and. all(2) .eq. 1, 'operation')
      call MPI_OP_FREE(op, ierr)
      call MPI_ALLREDUCE(MPI_IN_PLACE, mine, 2, MPI_INTEGER, MPI_SUM,
     &     MPI_COMM_WORLD, ierr)
      call check(mine(2) .eq. size, 'in place')
      mine(1) = rank
      call MPI_IBCAST(mine, 1, MPI_INTEGER, size - 1, MPI_COMM_WORLD,
     &     request, ierr)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
      call check(mine(1) .eq. size - 1, 'ibcast')
      end

      subroutine attributes()
      implicit none
      include 'mpif.h'
      integer ierr, keyval, other, small
      integer(kind=MPI_ADDRESS_KIND) value, large
      logical flag
      call MPI_COMM_GET_ATTR(MPI_COMM_WORLD, MPI_TAG_UB, value, flag,
     &     ierr)
      call check(flag .and. value .ge. 32767, 'MPI_TAG_UB')
      large = 2_MPI_ADDRESS_KIND ** 40 + 5
      call MPI_COMM_CREATE_KEYVAL(MPI_COMM_DUP_FN,
     &     MPI_COMM_NULL_DELETE_FN, keyval, large, ierr)
      call MPI_COMM_SET_ATTR(MPI_COMM_SELF, keyval, large, ierr)
      call MPI_COMM_DUP(MPI_COMM_SELF, other, ierr)
      value = 0
      call MPI_COMM_GET_ATTR(other, keyval, value, flag, ierr)
      call check(flag .and. value .eq. large, 'copied')
      call MPI_COMM_DELETE_ATTR(MPI_COMM_SELF, keyval, ierr)
      call MPI_COMM_GET_ATTR(MPI_COMM_SELF, keyval, value, flag, ierr)
      call check(.not. flag, 'deleted')
      call MPI_COMM_FREE(other, ierr)
      call MPI_COMM_FREE_KEYVAL(keyval, ierr)
      call check(keyval .eq. MPI_KEYVAL_INVALID, 'keyval')
C     The attribute functions of MPI 1 must still work.
      call MPI_KEYVAL_CREATE(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN,
     &     keyval, 0, ierr)
      call MPI_ATTR_PUT(MPI_COMM_SELF, keyval, -17, ierr)
      call MPI_ATTR_GET(MPI_COMM_SELF, keyval, small, flag, ierr)
      call check(flag .and. small .eq. -17, 'attr_get')
      call MPI_ATTR_DELETE(MPI_COMM_SELF, keyval, ierr)
      call MPI_KEYVAL_FREE(keyval, ierr)
      end

      subroutine types(rank, size)
      implicit none
      include 'mpif.h'
      integer rank, size, ierr, type, i, bytes, number
      integer lengths(2), kinds(2), request
      integer(kind=MPI_ADDRESS_KIND) places(2), lower, extent
      double precision real
      common /both/ real, number
      places(1) = 0
      call MPI_GET_ADDRESS(real, places(1), ierr)
      call MPI_GET_ADDRESS(number, places(2), ierr)
      lengths(1) = 1
      lengths(2) = 1
      kinds(1) = MPI_DOUBLE_PRECISION
      kinds(2) = MPI_INTEGER
      call MPI_TYPE_CREATE_STRUCT(2, lengths, places, kinds, type,
     &     ierr)
      call MPI_TYPE_COMMIT(type, ierr)
      call MPI_TYPE_SIZE(type, bytes, ierr)
      call check(bytes .eq. 12, 'size')
      real = 1.5d0
      number = rank
      call MPI_ISEND(MPI_BOTTOM, 1, type, rank, 5, MPI_COMM_WORLD,
     &     request, ierr)
      call MPI_WAIT(request, MPI_STATUS_IGNORE, ierr)
      real = 0
      number = -1
      call MPI_RECV(MPI_BOTTOM, 1, type, rank, 5, MPI_COMM_WORLD,
     &     MPI_STATUS_IGNORE, ierr)
      call check(real .eq. 1.5d0 .and. number .eq. rank, 'MPI_BOTTOM')
      call MPI_TYPE_FREE(type, ierr)
      call MPI_TYPE_VECTOR(3, 1, 2, MPI_INTEGER, type, ierr)
      call MPI_TYPE_GET_EXTENT(type, lower, extent, ierr)
      call check(lower .eq. 0 .and. extent .eq. 20, 'extent')
      call MPI_TYPE_FREE(type, ierr)
      end

C     An error handler that counts its calls.
      subroutine handler(comm, code)
      implicit none
      include 'mpif.h'
      integer comm, code, calls
      common /handled/ calls
      call check(comm .eq. MPI_COMM_SELF, 'communicator of the error')
      calls = calls + 1
      end

      subroutine errors()
      implicit none
      include 'mpif.h'
      integer ierr, class, errhandler, calls
      external handler
      common /handled/ calls
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_SELF, MPI_ERRORS_RETURN,
     &     ierr)
      call MPI_SEND(1, 1, MPI_INTEGER, 5, 0, MPI_COMM_SELF, ierr)
      call MPI_ERROR_CLASS(ierr, class, ierr)
      call check(class .eq. MPI_ERR_RANK, 'class of a wrong rank')
      calls = 0
      call MPI_COMM_CREATE_ERRHANDLER(handler, errhandler, ierr)
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_SELF, errhandler, ierr)
      call MPI_ERRHANDLER_FREE(errhandler, ierr)
      call MPI_SEND(1, 1, MPI_INTEGER, 5, 0, MPI_COMM_SELF, ierr)
      call check(calls .eq. 1, 'handler')
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL,
     &     ierr)
      end
