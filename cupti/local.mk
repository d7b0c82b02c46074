# cupti/: everything that knows CUDA. Compiled only where the CUDA and CUPTI headers are.
if UM_WITH_CUDA
libumcore_la_CPPFLAGS += $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS)
libumcore_la_SOURCES += %D%/driver.c %D%/driver.h %D%/headers.h
endif
