# tests of lib/core
check_PROGRAMS += tests/unit/regions tests/unit/bus
tests_unit_regions_SOURCES = tests/unit/regions.c
tests_unit_bus_SOURCES = tests/unit/bus.c
