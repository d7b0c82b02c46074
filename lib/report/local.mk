# From events to a report.
libumtool_la_SOURCES += \
	%D%/report.h %D%/collect.h %D%/report.c %D%/trace_stat.h %D%/trace_stat.c %D%/rate.c \
	%D%/map.h %D%/map.c %D%/cover.h \
	%D%/regions_stat.h %D%/regions_stat.c %D%/region_parts.h \
	%D%/groups.c %D%/live.c %D%/fold.c %D%/shared_pages.c %D%/uses_stat.h %D%/uses_stat.c \
	%D%/kernels_stat.h %D%/kernels_stat.c \
	%D%/copies_stat.h %D%/copies_stat.c %D%/timeline.h %D%/timeline.c \
	%D%/places.h %D%/places.c %D%/places_impl.h %D%/call_site.c %D%/places_rules.h %D%/places_rules.c %D%/dwarf.h %D%/dwarf.c \
	%D%/heatmap.h %D%/heatmap.c %D%/lanes.h %D%/lanes.c \
	%D%/units.h %D%/units.c %D%/demangle.h %D%/demangle.c \
	%D%/emitter.h %D%/emitter.c %D%/text.c \
	%D%/sections.h %D%/output.c %D%/tables.c %D%/places_section.c %D%/own_section.c %D%/families.h %D%/families.c \
	%D%/same.h %D%/same.c %D%/sarif.h %D%/sarif.c %D%/csv.h %D%/csv.c %D%/perfetto.h %D%/perfetto.c %D%/tracks.h %D%/tracks.c \
	%D%/diff.h %D%/diff_parts.h %D%/diff.c %D%/diff_gate.c %D%/diff_write.c \
	%D%/rank_test.h %D%/rank_test.c \
	%D%/fix.h %D%/fix.c %D%/dialect.h %D%/dialect.c %D%/code.h %D%/code.c %D%/target.h %D%/target.c %D%/inside.h %D%/inside.c %D%/code_section.c \
	%D%/patch.h %D%/patch.c %D%/patch_impl.h %D%/patch_edit.c %D%/patch_line.c %D%/patch_step.c \
	%D%/source.h %D%/source.c %D%/call_text.h %D%/call_text.c %D%/udiff.h %D%/udiff.c \
	%D%/findings/finding.h %D%/findings/table.c \
	%D%/findings/ping_pong.c %D%/findings/gpu_faults.c %D%/findings/host_read_tail.c \
	%D%/findings/false_sharing.c %D%/findings/thrashing.c %D%/findings/allocations.c \
	%D%/findings/pageable_copy.c %D%/findings/limits.h %D%/findings/limits.c \
	%D%/findings/explain.h %D%/findings/explain.c \
	%D%/findings/eviction.c %D%/findings/read_mostly_written.c %D%/findings/wrong_location.c \
	%D%/findings/used_once.c %D%/findings/pinned_pressure.c %D%/findings/pool_threshold.c \
	%D%/findings/gpu_bounce.c %D%/findings/not_evictable.c %D%/findings/recording.c \
	%D%/findings/own_hints.c %D%/findings/causes.c
EXTRA_DIST += %D%/SCHEMA.md %D%/schema.json
# the page: html/ is compiled in
libumtool_la_SOURCES += %D%/html.h %D%/html.c %D%/html_map.c
nodist_libumtool_la_SOURCES = %D%/html_page.c
html_page_parts = %D%/html/page.html %D%/html/page.css %D%/html/page.js \
	%D%/html/map.js %D%/html/sections.js
EXTRA_DIST += %D%/html/embed.sh $(html_page_parts)
CLEANFILES += %D%/html_page.c
%D%/html_page.c: %D%/html/embed.sh $(html_page_parts)
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SHELL) $(srcdir)/%D%/html/embed.sh $(srcdir)/%D%/html >$@.part && \
		mv $@.part $@
