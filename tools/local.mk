# The umrt command. A subcommand is one file tools/NAME.c (umrt_SOURCES +=), its line in the table of
# tools/umrt.c and its prototype in tools/um_tools.h.
bin_PROGRAMS += umrt
umrt_SOURCES = %D%/umrt.c %D%/um_tools.h
umrt_SOURCES += %D%/say.c %D%/input.c %D%/locate.c
umrt_SOURCES += %D%/import.c
umrt_CPPFLAGS = $(AM_CPPFLAGS) -DUM_LIBDIR=\"$(libdir)\" -DUM_LIBDIR_NAME=\"$(notdir $(libdir))\"
umrt_LDADD = libumtool.la libumcore.la
