# sim input: tests.
