"""Allocations of a Python program, through an extension that drops the interpreter's lock."""
import ctypes

driver = ctypes.CDLL("libcuda.so.1")


def start():
    context = ctypes.c_void_p()
    return (driver.cuInit(0) or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
            or driver.cuCtxSetCurrent(context))


class Model:
    def grid(self, size):
        at = ctypes.c_uint64()
        driver.cuMemAllocManaged(ctypes.byref(at), ctypes.c_size_t(size), 1)  # GRID
        return at.value


assert start() == 0
model = Model()
first = model.grid(1 << 20)  # FIRST
second = model.grid(2 << 20)  # SECOND
