/*
 * schema.h - one table that describes every event of um_event.h, field by field.
 *
 * The writer, the reader and the header of a .umt file are made from this table; nothing else in
 * lib/trace names a field. To add a field: append it to the struct in um_event.h and to its line
 * here. Names, kinds and widths of what is there never change: files are matched by name.
 */
#ifndef UM_SCHEMA_H
#define UM_SCHEMA_H

#include "um_event.h"

/* How a field's column is coded. The numbers are the file format's. */
typedef enum um_field_kind {
    UM_FIELD_UINT = 0,   /* as it is */
    UM_FIELD_SINT = 1,   /* as it is, sign-extended to 64 bits */
    UM_FIELD_DELTA = 2,  /* difference to the value before */
    UM_FIELD_CHAIN = 3,  /* difference to the value before plus its size, the column `ref` */
    UM_FIELD_STRING = 4, /* number of a string of the block */
    UM_FIELD_ARRAY = 5   /* number of elements; the `elements` fields that follow describe one */
} um_field_kind_t;

/* One field: a column of the file, and where it lives in memory. */
typedef struct um_field {
    const char *name;
    uint8_t kind;           /* um_field_kind_t */
    uint8_t bytes;          /* in memory: 4 or 8; of an ARRAY the count's */
    uint8_t ref;            /* CHAIN: the earlier field of this type that holds the size */
    uint8_t elements;       /* ARRAY: how many of the following fields make an element */
    uint16_t offset;        /* in the member of the union, or in the element; ARRAY: of the count */
    uint16_t array_offset;  /* ARRAY: of the pointer */
    uint16_t element_bytes; /* ARRAY */
} um_field_t;

typedef struct um_schema {
    const char *name;         /* um_event_type_name */
    const um_field_t *fields; /* NULL: no such type */
    uint8_t n_fields;
    bool points;    /* has strings or arrays */
    uint16_t bytes; /* of the member of the union */
} um_schema_t;

extern const um_schema_t um_schema_table[UM_EV_TYPE_COUNT];

/* Limits of the format, for the table above and for tables found in files. */
#define UM_SCHEMA_MAX_TYPES  256u
#define UM_SCHEMA_MAX_FIELDS 64u /* of one type, elements included */

#define UM_SCHEMA_ARRAYS 2u /* of one type of the table above, at most */

#endif
