"""The screen of umrt top on a pseudo-terminal: top_screen.py TEST UMRT PID-OR-PROGRAM."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

TEST, UMRT, TARGET = sys.argv[1:4]
DEADLINE = time.monotonic() + 300


class Terminal:
    def __init__(self, *command, locale="C.UTF-8", size=(24, 80), term="xterm"):
        self.master, self.slave = pty.openpty()
        self.resize(*size)
        self.modes = termios.tcgetattr(self.slave)
        self.seen = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in 0, 1, 2:
                os.dup2(self.slave, fd)
            os.environ.update(TERM=term, LC_ALL=locale)
            os.environ.pop("LINES", None)
            os.environ.pop("COLUMNS", None)
            os.execv(UMRT, [UMRT, "top", *command])

    def resize(self, lines, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 65536)

    def wait_for(self, pattern):
        """Drops what has been read before the match, too."""
        while not (match := re.search(pattern, self.seen)):
            if time.monotonic() > DEADLINE:
                sys.exit(f"no {pattern} in {self.seen!r}")
            self.read(0.2)
        self.seen = self.seen[match.end():]

    def keys(self, text):
        os.write(self.master, text)

    def end(self, status=0):
        """It ends by itself, with this status, and the terminal is as it was."""
        everything = self.seen
        while True:
            pid, how = os.waitpid(self.pid, os.WNOHANG)
            self.read(0.05)
            if pid:
                break
            if time.monotonic() > DEADLINE:
                os.kill(self.pid, signal.SIGKILL)
                sys.exit("it does not end")
        self.read(0)
        everything = self.seen
        if os.waitstatus_to_exitcode(how) != status:
            sys.exit(f"status {os.waitstatus_to_exitcode(how)}: {everything!r}")
        if termios.tcgetattr(self.slave) != self.modes:
            sys.exit("the modes of the terminal are not as before")
        if everything.count(b"\x1b[?1049l") != 1:
            sys.exit(f"the screen is not given back: {everything!r}")
        return everything.split(b"\x1b[?1049l")[1]


def shown(*command, **options):
    terminal = Terminal(*command, **options)
    terminal.wait_for(rb"umrt top")
    terminal.wait_for(rb"launches")
    return terminal


if TEST == "quit":
    t = shown(TARGET)
    t.keys(b"q")
    t.end()
elif TEST == "interrupt":
    t = shown(TARGET)
    t.keys(b"\x03")
    t.end()
elif TEST == "terminate":
    t = shown(TARGET)
    os.kill(t.pid, signal.SIGTERM)
    t.end(128 + signal.SIGTERM)
elif TEST == "resize":
    t = shown(TARGET, size=(40, 100))
    for size in (3, 10), (1, 1), (60, 200), (24, 80):
        t.resize(*size)
        time.sleep(0.3)
        t.read(0)
    t.seen = b""
    t.resize(30, 120)
    t.wait_for(rb"back_and_forth|ADDRESS")
    t.keys(b"q")
    t.end()
elif TEST == "sort_and_pause":
    t = shown(TARGET)
    t.keys(b"s")
    t.wait_for(rb"family")
    t.keys(b"S")
    t.wait_for(rb"size")
    t.keys(b"r")
    t.wait_for(rb"reversed")
    t.keys(b"p")
    t.wait_for(rb"paused")
    t.keys(b"\x1b[B\x1b[A\x1b[6~\x1b[5~q")
    t.end()
elif TEST == "ascii":
    t = shown(TARGET, locale="C")
    t.keys(b"q")
    if re.search(rb"[\x80-\xff]", t.seen + t.end()):
        sys.exit("not only ASCII")
elif TEST == "dumb":  # no screen, then: lines
    t = Terminal("-n", "2", "-i", "0.1", TARGET, term="dumb")
    t.wait_for(rb"pid=.*\r\npid=.*\r\n")
    os.waitpid(t.pid, 0)
    if b"\x1b" in t.seen:
        sys.exit("not only lines")
elif TEST == "killed":
    t = shown(TARGET)
    os.kill(int(TARGET), signal.SIGKILL)
    t.wait_for(rb"ended")
    if b"launches" not in t.end():
        sys.exit("no last figures")
elif TEST == "program":
    t = shown("-i", "0.2", "--", "/bin/sh", "-c", f"{TARGET} 16 40; echo said >&2; exit 3")
    if not re.search(rb"sum \d+\r\nsaid\r\numrt: ", t.end(3)):
        sys.exit(f"not its output: {t.seen!r}")
elif TEST == "quit_before_the_end":
    t = shown("-i", "0.2", "--", "/bin/sh", "-c", f"{TARGET} 16 60; test -t 1 || echo none; exit 4")
    t.keys(b"q")
    if not re.search(rb"sum \d+\r\nnone\r\numrt: ", t.end(4)):
        sys.exit(f"not its output: {t.seen!r}")
else:
    sys.exit(f"no test {TEST}")
