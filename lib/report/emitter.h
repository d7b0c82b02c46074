/*
 * emitter.h - one code path writes text for people and JSON for programs.
 *
 * Sections say what they know once: pairs and table rows with typed values. Text shows them in human
 * units, aligned to the width; JSON keeps them exact (bytes, nanoseconds, addresses as "0x..."
 * strings) under documented keys. Strings from traces are made valid UTF-8 without control
 * characters on the way out, in both. Errors stick: um_emitter_close reports the first.
 */
#ifndef UM_EMITTER_H
#define UM_EMITTER_H

#include "report.h"

typedef enum um_value_kind {
    UM_VALUE_NONE = 0, /* "-" and null */
    UM_VALUE_COUNT,
    UM_VALUE_BYTES,
    UM_VALUE_NS,
    UM_VALUE_RATE,    /* bytes per second */
    UM_VALUE_PERCENT, /* 0..100 */
    UM_VALUE_RATIO,   /* thousandths: "1.25x" and 1.25 */
    UM_VALUE_ADDR,
    UM_VALUE_BOOL,
    UM_VALUE_REAL,
    UM_VALUE_TEXT,
    UM_VALUE_CODE /* text of several lines */
} um_value_kind_t;

typedef struct um_value {
    um_value_kind_t kind;
    uint64_t n;
    double real;
    const char *text; /* borrowed; tables copy it */
} um_value_t;

#define um_none()     ((um_value_t){.kind = UM_VALUE_NONE})
#define um_count(x)   ((um_value_t){.kind = UM_VALUE_COUNT, .n = (x)})
#define um_bytes(x)   ((um_value_t){.kind = UM_VALUE_BYTES, .n = (x)})
#define um_ns(x)      ((um_value_t){.kind = UM_VALUE_NS, .n = (x)})
#define um_rate(x)    ((um_value_t){.kind = UM_VALUE_RATE, .n = (x)})
#define um_percent(x) ((um_value_t){.kind = UM_VALUE_PERCENT, .n = (x)})
#define um_ratio(x)   ((um_value_t){.kind = UM_VALUE_RATIO, .n = (x)})
#define um_addr(x)    ((um_value_t){.kind = UM_VALUE_ADDR, .n = (x)})
#define um_bool(x)    ((um_value_t){.kind = UM_VALUE_BOOL, .n = (x)})
#define um_real(x)    ((um_value_t){.kind = UM_VALUE_REAL, .real = (x)}) /* finite */
#define um_text(x)    ((um_value_t){.kind = UM_VALUE_TEXT, .text = (x)})
#define um_code(x)    ((um_value_t){.kind = UM_VALUE_CODE, .text = (x)})

typedef struct um_column {
    const char *key;   /* in JSON; NULL = text only */
    const char *title; /* in text; NULL = JSON only */
    bool left;         /* aligned left; the first such column gives way when the line is too long */
    bool spare;        /* in text: left out, the last first, when the line is too long */
    const char *hide;  /* in text: left out when every row says this; NULL = never */
} um_column_t;

typedef struct um_emitter um_emitter_t;

um_status_t um_emitter_open(const um_report_options_t *options, FILE *out, um_emitter_t **e);
/* Writes the JSON, flushes, frees. UM_ERR_IO, UM_ERR_NO_MEMORY. */
um_status_t um_emitter_close(um_emitter_t *e);

/* There was no memory for what should be written: um_emitter_close says so. */
void um_emitter_fail(um_emitter_t *e);
/* Frees without writing what JSON has gathered. */
void um_emitter_abandon(um_emitter_t *e);

/* JSON structure; no effect in text. key NULL inside arrays. */
void um_emitter_object(um_emitter_t *e, const char *key);
void um_emitter_array(um_emitter_t *e, const char *key);
void um_emitter_end(um_emitter_t *e);

/* "label   value" in text (label NULL = not there), "key": value in JSON (key NULL = not there). */
void um_emitter_pair(um_emitter_t *e, const char *key, const char *label, um_value_t value);
void um_emitter_element(um_emitter_t *e, um_value_t value); /* of a JSON array; no effect in text */

/* Text only. */
void um_emitter_heading(um_emitter_t *e, const char *title);
void um_emitter_line(um_emitter_t *e, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* as it is, cut at nothing */
/* "  label     text", wrapped at the width and indented under itself; what follows code as a comment stays in
 * one piece. */
void um_emitter_wrap(um_emitter_t *e, const char *label, const char *text);
/* The same for several lines, each of them wrapped. */
void um_emitter_lines(um_emitter_t *e, const char *label, const char *text);
bool um_emitter_is_text(const um_emitter_t *e);
const um_report_options_t *um_emitter_options(const um_emitter_t *e);

/* A table: an array of objects in JSON. At most options.top rows are shown in text, then how many
 * more there are; JSON has all of them up to the same top. */
void um_emitter_table(um_emitter_t *e, const char *key, const um_column_t *columns, size_t n);
void um_emitter_row(um_emitter_t *e, const um_value_t *values);
void um_emitter_table_end(um_emitter_t *e, uint64_t more);

/* The value as text, units and all. */
void um_value_print(um_value_t value, char *out, size_t bytes);
/* Valid UTF-8 without control characters (invalid bytes become U+FFFD, controls '?'); malloc'ed. */
char *um_text_clean(const char *text);
char *um_text_clean_lines(const char *text); /* the same, but for ends of lines */
/* Bytes of the character at text that can be shown as it is; 0 = it would command a terminal or an editor, or
 * is no UTF-8. */
size_t um_text_plain(const char *text);
size_t um_text_columns(const char *text); /* code points */

#endif
