# What the tree promises about itself, and the targets that are not `make check`.
dist_check_SCRIPTS += \
	tests/meta/include_rules.sh \
	tests/meta/exported_symbols.sh \
	tests/meta/needed_libraries.sh \
	tests/meta/installed_headers.sh \
	tests/meta/measure.sh \
	tests/meta/install_tree.sh \
	tests/meta/quickstart_run.sh \
	tests/meta/tree_hygiene.sh
EXTRA_DIST += \
	quickstart tests/meta/tap.sh tests/no-criterion/criterion/criterion.h \
	tests/in-process/criterion/criterion.h tests/lsan.supp \
	tests/fuzz .clang-format .clang-tidy

# The unit tests alone, for builds with sanitizers: `make check-unit`, `make check-threads`. Tests in
# which threads meet go into UM_THREAD_TESTS.
check-unit:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(check_PROGRAMS)'
check-threads:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(UM_THREAD_TESTS)' check_PROGRAMS='$(UM_THREAD_TESTS)'

# tests/gpu/check_*.sh, on a machine with a GPU. There, a skipped test is a failed one. They need the
# command and the examples alone: a machine without Criterion will do.
check-gpu:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TEST_SUITE_LOG=check-gpu.log VERBOSE=1 \
	    check_PROGRAMS= TESTS="$$(cd $(srcdir) && ls tests/gpu/check_*.sh | tr '\n' ' ')"
	@if grep -q '^# SKIP: *[1-9]' check-gpu.log; then \
	    echo 'check-gpu: a skipped test is a failure here; see check-gpu.log'; exit 1; fi

# tests/softgpu/soak.sh for as long as one likes: make soak SECONDS=3600
soak:
	$(MAKE) $(AM_MAKEFLAGS) all
	SOAK_SECONDS=$(or $(SECONDS),600); export SOAK_SECONDS; \
	    $(MAKE) $(AM_MAKEFLAGS) check TESTS=tests/softgpu/soak.sh check_PROGRAMS=

# What needs no GPU. A room adds a program: EXTRA_PROGRAMS += bench/NAME, UM_BENCHES += bench/NAME.
bench: $(UM_BENCHES)
	@for b in $(UM_BENCHES); do echo "== $$b"; ./$$b || exit 1; done

FUZZ_SECONDS = 60
fuzz:
	$(SHELL) $(srcdir)/tests/fuzz/run.sh $(abs_top_srcdir) $(FUZZ_SECONDS) $(CLANG)

# Format and lint: what .ci/run checks; `make format` rewrites.
UM_C_FILES = find advisors cupti lib tools tests bench -name '*.[ch]' ! -path '*/no-criterion/*'
format:
	cd $(srcdir) && $(UM_C_FILES) | xargs clang-format -i
check-format:
	cd $(srcdir) && $(UM_C_FILES) | xargs clang-format --dry-run -Werror
UM_TIDY_FILES = $(filter %.c,$(libumcore_la_SOURCES) $(libumtool_la_SOURCES) $(umrt_SOURCES))
check-tidy:
	printf '$(srcdir)/%s\n' $(UM_TIDY_FILES) | xargs -n 1 -P 2 sh -c \
	    'clang-tidy --quiet --warnings-as-errors="*" "$$1" -- -std=gnu11 $(UM_TIDY_FLAGS)' tidy
UM_TIDY_FLAGS = $(DEFS) -I. $(umrt_CPPFLAGS) $(libumtool_la_CPPFLAGS) $(CUDA_CPPFLAGS) $(CUPTI_CPPFLAGS)

.PHONY: check-unit check-threads check-gpu soak bench fuzz format check-format check-tidy
