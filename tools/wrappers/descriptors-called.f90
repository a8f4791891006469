! The called side of tools/wrappers/descriptors.f90: reads descriptors in the layout of src/fortran/native/descriptor.h.
module descriptors_called
  use, intrinsic :: iso_c_binding
  implicit none
  type(c_ptr), save :: kept = c_null_ptr
contains
  subroutine probe_layout(array, first, rank, extents, strides, wrong) bind(C, name='starling_probe_layout')
    type(c_ptr), value :: array, first
    integer(c_int), intent(in) :: rank
    integer(c_int64_t), intent(in) :: extents(*), strides(*)
    integer(c_int), intent(inout) :: wrong
    integer(c_int64_t), pointer :: words(:)
    integer :: i
    call c_f_pointer(array, words, [3 + 3 * rank])
    if (words(1) /= transfer(first, words(1)) .or. words(2) /= 4) wrong = wrong + 1
    if (iand(ishft(words(3), -32), 255_c_int64_t) /= rank) wrong = wrong + 1
    do i = 1, rank
      if (words(3 * i + 2) /= extents(i) .or. words(3 * i + 3) /= strides(i)) wrong = wrong + 1
    end do
  end subroutine probe_layout

  subroutine probe_begin(array) bind(C, name='starling_probe_begin')
    type(c_ptr), value :: array
    type(c_ptr), pointer :: first
    call c_f_pointer(array, first)
    kept = first
  end subroutine probe_begin

  subroutine probe_end() bind(C, name='starling_probe_end')
    integer(c_int), pointer :: value
    call c_f_pointer(kept, value)
    value = value + 7
  end subroutine probe_end
end module descriptors_called
