! Exits with 0 if this compiler passes descriptors for arrays of any type and rank in the layout that the library expects, and does not move
! accesses to asynchronous variables across the wait. Compiled and run by tools/wrappers/fortran-modules.
module descriptors_given
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int) :: wrong = 0
  type pair
    integer(c_int) :: first
    real(c_float) :: others(3)
  end type pair
  interface
    subroutine probe_layout(array, first, rank, extents, strides, wrong) bind(C, name='starling_probe_layout')
      import :: c_ptr, c_int, c_int64_t
      implicit none
      type(*), dimension(..), intent(in), asynchronous :: array
      type(c_ptr), value :: first
      integer(c_int), intent(in) :: rank
      integer(c_int64_t), intent(in) :: extents(*), strides(*)
      integer(c_int), intent(inout) :: wrong
    end subroutine probe_layout
    subroutine probe_begin(array) bind(C, name='starling_probe_begin')
      implicit none
      type(*), dimension(..), asynchronous :: array
    end subroutine probe_begin
    subroutine probe_end() bind(C, name='starling_probe_end')
    end subroutine probe_end
  end interface
contains
  subroutine of_any_shape(x)
    real(c_float), intent(in), target :: x(:, :)
    call probe_layout(x, c_loc(x(1, 1)), 2, [2_c_int64_t, 4_c_int64_t], [8_c_int64_t, -16_c_int64_t], wrong)
  end subroutine of_any_shape

  subroutine of_any_size(x)
    real(c_float), intent(in), target :: x(4, *)
    call probe_layout(x, c_loc(x(1, 1)), 2, [4_c_int64_t, -1_c_int64_t], [4_c_int64_t, 16_c_int64_t], wrong)
  end subroutine of_any_size

  subroutine later()
    integer(c_int), asynchronous :: alone, several(4)
    alone = 1
    several = 2
    call probe_begin(alone)
    call probe_end()
    if (alone /= 8) wrong = wrong + 1
    call probe_begin(several(3:4))
    call probe_end()
    if (any(several /= [2, 2, 9, 2])) wrong = wrong + 1
  end subroutine later
end module descriptors_given

program descriptors
  use descriptors_given
  implicit none
  real(c_float), target :: x(4, 5)
  type(pair), target :: pairs(6)
  x = 0
  pairs%first = 0
  call of_any_shape(x(1:3:2, 5:2:-1))
  call of_any_size(x)
  call probe_layout(x(2:4, 2:3), c_loc(x(2, 2)), 2, [3_c_int64_t, 2_c_int64_t], [4_c_int64_t, 16_c_int64_t], wrong)
  call probe_layout(x(2, 2), c_loc(x(2, 2)), 0, [0_c_int64_t], [0_c_int64_t], wrong)
  call probe_layout(pairs%first, c_loc(pairs(1)%first), 1, [6_c_int64_t], [16_c_int64_t], wrong)
  call later()
  if (wrong /= 0) stop 1
end program descriptors
