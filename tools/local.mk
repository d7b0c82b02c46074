# The umrt command. A subcommand is one file tools/NAME.c (umrt_SOURCES +=), its line in the table of
# tools/umrt.c and its prototype in tools/um_tools.h.
bin_PROGRAMS += umrt
umrt_SOURCES = %D%/umrt.c %D%/um_tools.h
umrt_SOURCES += %D%/say.c %D%/input.c %D%/locate.c %D%/events.c %D%/output.c %D%/progress.c %D%/progress.h
umrt_SOURCES += %D%/run.c %D%/record.c %D%/launch.c %D%/launch.h %D%/options.c %D%/options.h \
	%D%/pattern.c %D%/pattern.h
umrt_SOURCES += %D%/top.c %D%/top_page.c %D%/top_page.h %D%/top_frame.c %D%/top_frame.h \
	%D%/top_screen.c %D%/top_screen.h
umrt_SOURCES += %D%/info.c %D%/info_trace.c %D%/info.h %D%/totals.c %D%/totals.h
umrt_SOURCES += %D%/dump.c %D%/profile.c
umrt_SOURCES += %D%/import.c %D%/report.c %D%/diff.c %D%/export.c %D%/explain.c
umrt_SOURCES += %D%/gen.c
umrt_SOURCES += %D%/what_if.c %D%/predicting.c %D%/predicting.h
umrt_SOURCES += %D%/calibrate.c
umrt_SOURCES += %D%/replay.c %D%/replay.h %D%/replay_args.c %D%/replay_backtest.c %D%/replay_open.c

umrt_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(CURSES_CFLAGS) -DUM_LIBDIR=\"$(libdir)\" \
	-DUM_LIBDIR_BESIDE=\"../$(notdir $(libdir))\"
umrt_LDADD = libumtool.la libumcore.la $(JANSSON_LIBS) $(CURSES_LIBS)

dist_man1_MANS = %D%/umrt.1
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %D%/umrt.bash
