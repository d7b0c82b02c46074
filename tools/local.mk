# the umrt command
