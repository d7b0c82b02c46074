# tests of the umrt command
check_PROGRAMS += tests/unit/note
tests_unit_note_SOURCES = tests/unit/note.c
