# Places in the program: function, file and line.
check_PROGRAMS += tests/unit/places
tests_unit_places_LDADD = $(report_ldadd)
EXTRA_DIST += tests/softgpu/places
if UM_WITH_CUDA
dist_check_SCRIPTS += tests/softgpu/places.sh tests/softgpu/patch.sh
endif
