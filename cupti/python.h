/*
 * python.h - the frames of the Python program that this thread runs, if it runs one.
 */
#ifndef UM_PYTHON_H
#define UM_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

/* Looks once whether there is an interpreter in this process whose frames can be read: CPython 3.8 to
 * 3.13. At attach, not in a callback: it asks the loader. */
void um_python_look(void);
bool um_python_is_there(void);

/* Appends "file.py:12(function)" frames, innermost first, separated by ';' (one before the first if
 * *used is not 0), to `text` of `bytes`. false: nothing could be read, and nothing was appended. Any
 * thread, with or without the interpreter's lock; takes no lock, no reference, and allocates nothing. */
bool um_python_frames(char *text, size_t bytes, size_t *used);

#endif
