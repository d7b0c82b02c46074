/*
 * python.h - the frames of the Python program that this thread runs, if it runs one.
 */
#ifndef UM_PYTHON_H
#define UM_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

/* Is an interpreter in this process whose frames can be read? */
bool um_python_is_there(void);

/* Appends "file.py:12(function)" frames, innermost first, separated by ';' (one before the first if
 * *used is not 0), to `text` of `bytes`. false: nothing could be read, and nothing was appended. */
bool um_python_frames(char *text, size_t bytes, size_t *used);

#endif
