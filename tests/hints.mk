# the hint loop and the runtime's life
EXTRA_DIST += tests/unit/hints_fake.h
check_PROGRAMS += tests/unit/pagemap tests/unit/residency tests/unit/gate tests/unit/hinter
tests_unit_pagemap_SOURCES = tests/unit/pagemap.c
tests_unit_residency_SOURCES = tests/unit/residency.c
tests_unit_gate_SOURCES = tests/unit/gate.c
tests_unit_hinter_SOURCES = tests/unit/hinter.c
