/*
 * call_text.h - one call in one line of C or C++: its arguments as they are written, and whether it is a
 * statement that stands alone. What is not certain is refused with the reason.
 */
#ifndef UM_CALL_TEXT_H
#define UM_CALL_TEXT_H

#include "um_event.h"

#define UM_CALL_ARGS_MAX 32

/* In the line; nothing is copied. */
typedef struct um_piece {
    size_t at, n;
} um_piece_t;

typedef struct um_call_text {
    size_t name_at, end; /* from the name to behind the closing parenthesis */
    um_piece_t args[UM_CALL_ARGS_MAX];
    uint32_t n_args;
    um_piece_t config[4]; /* of a launch: <<<...>>> */
    uint32_t n_config;
    bool alone; /* in its line but for ';', a comment, and what its value is given to */
    bool plain; /* its value is given to nobody, or to a macro around it */
} um_call_text_t;

/* The only call of one of `names` (NULL ends them) in the line; NULL, or why there is none. */
const char *um_call_text_find(const char *line, size_t n, const char *const *names,
                              um_call_text_t *out);
/* The same of a kernel's launch; `name` is the kernel's last word. */
const char *um_call_text_launch(const char *line, size_t n, const char *name, um_call_text_t *out);

/* "&grid", "(void **)&s->grid[i]", "reinterpret_cast<void **>(&p)" name the pointer that is set: its
 * text; a pointer to one that is handed through ("out") is "*out". False: it is anything else. */
bool um_call_text_pointer(const char *line, um_piece_t arg, char *out, size_t bytes);
/* A pointer that is passed, casts aside: "grid", "s->grid"; false: an expression. */
bool um_call_text_name(const char *line, um_piece_t arg, char *out, size_t bytes);
/* May it be written twice? Nothing in it changes or calls anything, but for sizes. */
bool um_call_text_repeatable(const char *line, um_piece_t arg);

#endif
