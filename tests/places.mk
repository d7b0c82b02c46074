# Places in the program: function, file and line.
EXTRA_DIST += tests/softgpu/places
if UM_WITH_CUDA
dist_check_SCRIPTS += tests/softgpu/places.sh
endif
