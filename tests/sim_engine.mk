# sim engine: tests.
