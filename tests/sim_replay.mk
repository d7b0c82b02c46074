# sim replay: tests.
