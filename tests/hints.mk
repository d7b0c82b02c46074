# tests of this room
EXTRA_DIST += tests/unit/hints_fake.h
check_PROGRAMS += tests/unit/pagemap tests/unit/residency
tests_unit_pagemap_SOURCES = tests/unit/pagemap.c
tests_unit_residency_SOURCES = tests/unit/residency.c
