# sim uvm: tests.
