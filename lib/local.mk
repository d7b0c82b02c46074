# lib/: everything that knows no CUDA. Each room lists its sources in its own local.mk.
include_HEADERS = %D%/um_runtime.h %D%/um_event.h %D%/um_advisor.h %D%/um_trace.h

# What libumrt.so is made of and what tests and tools link with: lib/, cupti/ and advisors/ together.
noinst_LTLIBRARIES += libumcore.la
libumcore_la_SOURCES =
libumcore_la_CPPFLAGS = $(AM_CPPFLAGS)
libumcore_la_LIBADD = $(UM_ZSTD_LIBS) -lpthread -ldl

# The library itself. Only what the installed headers mark UM_API leaves it, and it needs libc alone.
lib_LTLIBRARIES += libumrt.la
libumrt_la_SOURCES =
libumrt_la_LIBADD = libumcore.la
# nodelete: CUPTI and the driver hold our callbacks, whatever the program closes.
libumrt_la_LDFLAGS = -shared -version-info 0:0:0 -Wl,-z,nodelete $(UM_HIDE_LDFLAGS) $(UM_NO_UNDEFINED) $(AM_LDFLAGS)

# What only the umrt command needs: importers (SQLite) and report (jansson).
noinst_LTLIBRARIES += libumtool.la
libumtool_la_SOURCES =
libumtool_la_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS) $(JANSSON_CFLAGS) $(DW_CFLAGS)
libumtool_la_LIBADD = $(SQLITE_LIBS) $(JANSSON_LIBS) $(DW_LIBS)

include lib/core/local.mk
include lib/model/local.mk
include lib/exec/local.mk
include lib/trace/local.mk
include lib/trace/import.mk
include lib/report/local.mk
include lib/sim/local.mk
