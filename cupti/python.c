/*
 * python.c - which lines of a Python program lead here.
 *
 * Extensions mostly drop the interpreter's lock before they call CUDA, so its API cannot be used: it
 * counts references. But this thread's frames stand still while it is here, and what they refer to is
 * kept alive by them. So they are read as memory, through the kernel, which answers an error where a
 * wrong address would end the program; and an object whose type is not the interpreter's own type
 * object is not read at all. An interpreter laid out otherwise (free-threaded, for debugging, newer)
 * gives no frames.
 */
#include "python.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define UM_PYTHON_FRAMES 8   /* told */
#define UM_PYTHON_LOOK   64  /* looked at: some are the interpreter's own */
#define UM_TYPE_AT       8   /* in every object */
#define UM_TEXT_BYTES    256 /* of a file name or a function's: longer ones are cut in front */
#define UM_OBJECT_BYTES  208 /* of a frame or code object, as much as is looked at */

/* Where things are, by CPython's minor version. A thread's state has the frame at `frame`, or there a
 * pointer to what has it at `inner`. */
typedef struct um_layout {
    uint16_t minor;
    uint8_t frame, inner; /* inner: UM_NONE = the frame itself is there */
    uint8_t code, back;   /* in a frame */
    uint8_t at;    /* in a frame: the instruction, as a pointer into the code object, or a number */
    uint8_t owner; /* in a frame: 3 = it stands for C code; UM_NONE = there are none such */
    uint8_t scale; /* the number is in units of this many bytes; 0: it is a pointer */
    uint8_t file, name; /* in a code object */
    uint8_t bytecode;
    uint8_t text; /* size of a string's head; the characters of an ASCII one follow */
} um_layout_t;
#define UM_NONE 255

static const um_layout_t um_layouts[] = {
    /*     frame inner code back  at owner scale file name bytecode text */
    {8, 24, UM_NONE, 32, 24, 104, UM_NONE, 1, 104, 112, 0, 48},
    {9, 24, UM_NONE, 32, 24, 104, UM_NONE, 1, 104, 112, 0, 48},
    {10, 24, UM_NONE, 32, 24, 96, UM_NONE, 2, 104, 112, 0, 48},
    {11, 56, 8, 32, 48, 56, UM_NONE, 0, 112, 128, 184, 48},
    {12, 56, 0, 0, 8, 56, 70, 0, 112, 128, 192, 40},
    {13, 72, UM_NONE, 0, 8, 56, 70, 0, 112, 128, 200, 40},
};

/* Set once by um_python_look. */
static const um_layout_t *um_layout;
static uintptr_t um_code_type, um_text_type;
static pid_t um_self;
static void *(*um_thread_state)(void);
static int (*um_line_of)(void *code, int at);

/* As much as can be read, at least `least` bytes. */
static bool um_peek(uintptr_t from, void *out, size_t bytes, size_t least)
{
    struct iovec to = {out, bytes}, at = {(void *)from, bytes};
    ssize_t n = process_vm_readv(um_self, &to, 1, &at, 1, 0);

    return n >= (ssize_t)least;
}

static uintptr_t um_pointer(const void *object, size_t at)
{
    uintptr_t value;

    memcpy(&value, (const char *)object + at, sizeof(value));
    return value;
}

static const um_layout_t *um_layout_of(const char *version)
{
    char *end;
    unsigned long minor = strncmp(version, "3.", 2) == 0 ? strtoul(version + 2, &end, 10) : 0;

    for (size_t i = 0; i < sizeof(um_layouts) / sizeof(*um_layouts); i++)
        if (um_layouts[i].minor == minor)
            return &um_layouts[i];
    return NULL;
}

void um_python_look(void)
{
    const char *(*version)(void);
    uint64_t word = 1, seen = 0;

    um_self = getpid();
    *(void **)&version = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    *(void **)&um_thread_state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    *(void **)&um_line_of = dlsym(RTLD_DEFAULT, "PyCode_Addr2Line");
    um_code_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyCode_Type");
    um_text_type = (uintptr_t)dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    if (version && um_thread_state && um_line_of && um_code_type && um_text_type &&
        um_peek((uintptr_t)&word, &seen, sizeof(seen), sizeof(seen)) && seen == word)
        um_layout = um_layout_of(version());
}

bool um_python_is_there(void)
{
    return um_layout != NULL;
}

/* The end of an ASCII string; of others "?". Separators of frames become '_'. */
static bool um_read_text(uintptr_t at, char out[UM_TEXT_BYTES])
{
    uint8_t head[48];
    uint32_t state;

    if (!um_peek(at, head, um_layout->text, um_layout->text) ||
        um_pointer(head, UM_TYPE_AT) != um_text_type)
        return false;
    size_t length = um_pointer(head, 16);
    memcpy(&state, head + 32, sizeof(state));
    /* Bits: interned 2, kind 3, compact, ascii. */
    if ((state >> 5 & 3) != 3 || length > INT32_MAX) {
        strcpy(out, "?");
        return true;
    }
    size_t skip = length >= UM_TEXT_BYTES ? length - UM_TEXT_BYTES + 1 : 0;
    if (!um_peek(at + um_layout->text + skip, out, length - skip, length - skip))
        return false;
    out[length - skip] = '\0';
    for (char *c = out; *c; c++)
        if (*c == ';' || *c == '\n')
            *c = '_';
    return true;
}

static bool um_append_frame(uintptr_t code_at, const uint8_t *frame, char *text, size_t bytes,
                            size_t *used)
{
    uint8_t code[UM_OBJECT_BYTES];
    char file[UM_TEXT_BYTES], name[UM_TEXT_BYTES];
    int32_t at;

    if (!um_peek(code_at, code, sizeof(code), um_layout->name + 8u) ||
        um_pointer(code, UM_TYPE_AT) != um_code_type ||
        !um_read_text(um_pointer(code, um_layout->file), file) ||
        !um_read_text(um_pointer(code, um_layout->name), name))
        return false;
    if (um_layout->scale) {
        memcpy(&at, frame + um_layout->at, sizeof(at));
        at *= um_layout->scale;
    } else {
        at = (int32_t)(um_pointer(frame, um_layout->at) - code_at - um_layout->bytecode);
    }
    int line = um_line_of((void *)code_at, at);
    size_t left = bytes - *used;
    int wrote = snprintf(text + *used, left, "%s%s:%d(%s)", *used ? ";" : "", file,
                         line > 0 ? line : 0, name);
    if (wrote < 0 || (size_t)wrote >= left) {
        text[*used] = '\0';
        return false;
    }
    *used += (size_t)wrote;
    return true;
}

bool um_python_frames(char *text, size_t bytes, size_t *used)
{
    uint8_t frame[UM_OBJECT_BYTES];
    uintptr_t state = um_layout ? (uintptr_t)um_thread_state() : 0, at = 0;
    int told = 0;

    if (!state || !um_peek(state + um_layout->frame, &at, sizeof(at), sizeof(at)))
        return false;
    if (um_layout->inner != UM_NONE &&
        (!at || !um_peek(at + um_layout->inner, &at, sizeof(at), sizeof(at))))
        return false;
    for (int i = 0; at && i < UM_PYTHON_LOOK && told < UM_PYTHON_FRAMES; i++) {
        if (!um_peek(at, frame, sizeof(frame), 112))
            break;
        bool of_c = um_layout->owner != UM_NONE && frame[um_layout->owner] == 3;
        if (!of_c && !um_append_frame(um_pointer(frame, um_layout->code), frame, text, bytes, used))
            break;
        told += !of_c;
        at = um_pointer(frame, um_layout->back);
    }
    return told > 0;
}
