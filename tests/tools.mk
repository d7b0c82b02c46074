# tests of the umrt command
check_PROGRAMS += tests/unit/note tests/unit/say
tests_unit_say_SOURCES = tests/unit/say.c tools/say.c
tests_unit_say_LDADD = libumtool.la $(LDADD)
check_PROGRAMS += tests/unit/progress
tests_unit_progress_SOURCES = tests/unit/progress.c tools/progress.c tools/say.c
tests_unit_progress_LDADD = libumtool.la $(LDADD)
check_PROGRAMS += tests/unit/top tests/unit/top_threads
tests_unit_top_SOURCES = tests/unit/top.c tools/top_page.c
tests_unit_top_threads_SOURCES = tests/unit/top_threads.c tools/top_page.c
UM_THREAD_TESTS += tests/unit/top_threads

dist_check_SCRIPTS += tests/cli/usage.sh tests/cli/launch.sh tests/cli/record.sh tests/cli/info.sh \
	tests/cli/bad_input.sh tests/cli/completion.sh tests/cli/terminal.sh tests/cli/file_kinds.sh tests/cli/options_together.sh

# Helpers of the scripts, not tests themselves.
EXTRA_DIST += tests/cli/tap.sh tests/gpu/check_record.sh tests/gpu/check_torch.sh
noinst_PROGRAMS += tests/cli/sample tests/cli/inject
tests_cli_sample_SOURCES = tests/cli/sample.c
tests_cli_sample_LDADD = libumcore.la
tests_cli_inject_SOURCES = tests/cli/inject.c
tests_cli_inject_LDADD = -ldl
