module grid
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function alloc_managed(out, bytes, flags) bind(C, name="cuMemAllocManaged")
      import
      integer(c_int64_t), intent(out) :: out
      integer(c_size_t), value :: bytes
      integer(c_int), value :: flags
    end function
    integer(c_int) function cu_init(flags) bind(C, name="cuInit")
      import
      integer(c_int), value :: flags
    end function
    integer(c_int) function retain(context, device) bind(C, name="cuDevicePrimaryCtxRetain")
      import
      type(c_ptr), intent(out) :: context
      integer(c_int), value :: device
    end function
    integer(c_int) function set_current(context) bind(C, name="cuCtxSetCurrent")
      import
      type(c_ptr), value :: context
    end function
  end interface
contains
  subroutine make(bytes)
    integer(c_size_t), intent(in) :: bytes
    integer(c_int64_t) :: at
    integer :: status
    status = alloc_managed(at, bytes, 1) ! MAKE
    if (status /= 0 .or. at == 0) stop 1
  end subroutine
end module

subroutine outside(bytes)
  use grid
  integer(c_size_t), intent(in) :: bytes
  integer(c_int64_t) :: at
  integer :: status
  status = alloc_managed(at, bytes, 1) ! OUTSIDE
  if (status /= 0 .or. at == 0) stop 1
end subroutine

program demo
  use grid
  integer :: status
  type(c_ptr) :: context
  status = cu_init(0)
  status = retain(context, 0)
  status = set_current(context)
  call make(1048576_c_size_t)
  call outside(2097152_c_size_t)
  print *, status
end program
