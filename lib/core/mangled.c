/*
 * What a mangled name (Itanium C++ ABI) says about a kernel's parameters: which are pointers, which of
 * those to const, and which are floating point.
 *
 * A recursive descent over the part of the grammar that kernel names are made of. Instead of text each
 * production yields a um_type_t, the four bits that matter here; substitutions and template arguments
 * are remembered in that form. Whatever is not understood (expressions, decltype, too much of
 * anything) fails the whole name: no flags rather than wrong ones.
 */
#include "kernels.h"

#include <string.h>

#define UM_MAX_DEPTH 64     /* nesting of productions */
#define UM_MAX_STEPS 100000 /* productions in all: packs may be walked again and again */
#define UM_MAX_SUBS  512
#define UM_MAX_ARGS  128 /* template arguments of one list */
#define UM_MAX_PACK  256 /* elements of its packs together */

typedef struct um_type {
    bool pointer;  /* a pointer or a reference */
    bool to_const; /* and what it points to is const */
    bool is_const; /* the type itself is const */
    bool is_float; /* floating point of any width, complex included */
} um_type_t;

typedef struct um_targ {
    um_type_t type;
    bool pack;
    uint16_t first, count; /* of a pack: its elements in um_targs_t.pack */
} um_targ_t;

/* The template arguments that T_, T0_, ... stand for. */
typedef struct um_targs {
    um_targ_t arg[UM_MAX_ARGS];
    um_type_t pack[UM_MAX_PACK];
    uint16_t n, n_pack;
} um_targs_t;

typedef struct um_name {
    const char *at;
    const char *end;
    unsigned depth, steps;
    bool failed;
    um_type_t sub[UM_MAX_SUBS];
    unsigned n_sub;
    um_targs_t targs; /* of the function that is being described */
    bool lenient;     /* T_ may mean a generic lambda's own parameter: unknown, not an error */
    int pack_element; /* which element of a pack T_ means, -1 outside expansions */
    int pack_count;   /* elements of the packs met in this expansion, -1 = none met */
} um_name_t;

static um_type_t um_type(um_name_t *m);
static void um_encoding(um_name_t *m, uint32_t *flags, uint32_t max, uint32_t *n);

static const um_type_t um_plain;
static const um_type_t um_floating = {.is_float = true};

/* ---- characters ---- */

static char um_peek(const um_name_t *m, size_t ahead)
{
    return (size_t)(m->end - m->at) > ahead ? m->at[ahead] : '\0';
}

static um_type_t um_fail(um_name_t *m)
{
    m->failed = true;
    m->at = m->end; /* every loop ends */
    return um_plain;
}

static bool um_eat(um_name_t *m, char c)
{
    if (m->at == m->end || *m->at != c)
        return false;
    m->at++;
    return true;
}

static bool um_eat2(um_name_t *m, const char *two)
{
    if (um_peek(m, 0) != two[0] || um_peek(m, 1) != two[1])
        return false;
    m->at += 2;
    return true;
}

static void um_expect(um_name_t *m, char c)
{
    if (!um_eat(m, c))
        um_fail(m);
}

static bool um_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool um_enter(um_name_t *m)
{
    if (m->failed || m->depth >= UM_MAX_DEPTH || m->steps >= UM_MAX_STEPS) {
        um_fail(m);
        return false;
    }
    m->depth++;
    m->steps++;
    return true;
}

static void um_sub_add(um_name_t *m, um_type_t type)
{
    if (m->n_sub == UM_MAX_SUBS)
        um_fail(m);
    else
        m->sub[m->n_sub++] = type;
}

/* Digits, at most six of them; -1 when there are none. */
static int um_number(um_name_t *m)
{
    int n = 0, digits = 0;

    for (; um_is_digit(um_peek(m, 0)); m->at++) {
        if (++digits > 6) {
            um_fail(m);
            return -1;
        }
        n = n * 10 + (*m->at - '0');
    }
    return digits != 0 ? n : -1;
}

/* "_" = 0, "0_" = 1, "1_" = 2, ... in the given base; the letter before it is eaten. */
static unsigned um_seq_id(um_name_t *m, unsigned base)
{
    unsigned n = 0;

    if (um_eat(m, '_'))
        return 0;
    for (; um_peek(m, 0) != '_'; m->at++) {
        char c = um_peek(m, 0);
        unsigned digit = um_is_digit(c)                       ? (unsigned)(c - '0')
                         : base == 36 && c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 10
                                                              : base;

        if (digit >= base || n > 100000) {
            um_fail(m);
            return 0;
        }
        n = n * base + digit;
    }
    m->at++;
    return n + 1;
}

/* ---- names ---- */

static void um_source_name(um_name_t *m)
{
    int n = um_number(m);

    if (n <= 0 || n > m->end - m->at)
        um_fail(m);
    else
        m->at += n;
}

static void um_abi_tags(um_name_t *m)
{
    while (um_eat(m, 'B'))
        um_source_name(m);
}

/* Parameter types up to 'E', of a function type or a lambda. */
static void um_skip_types(um_name_t *m)
{
    while (!m->failed && !um_eat(m, 'E'))
        um_type(m);
}

/* After "Ut" or "Ul". */
static void um_unnamed(um_name_t *m, bool lambda)
{
    if (lambda) {
        bool lenient = m->lenient;

        m->lenient = true;
        um_skip_types(m);
        m->lenient = lenient;
    }
    um_number(m);
    um_expect(m, '_');
}

static void um_operator_name(um_name_t *m)
{
    static const char known[] =
        "nw na dl da ps ng ad de co pl mi ml dv rm an or eo aS pL mI mL dV rM aN "
        "oR eO ls rs lS rS eq ne lt gt le ge ss nt aa oo pp mm cm pm pt cl ix qu ";
    const char two[] = {um_peek(m, 0), um_peek(m, 1), ' ', '\0'};

    if (um_eat2(m, "cv")) {
        um_type(m);
    } else if (um_eat2(m, "li")) {
        um_source_name(m);
    } else if (two[0] != '\0' && two[1] != '\0' && strstr(known, two) != NULL) {
        m->at += 2;
    } else {
        um_fail(m);
    }
}

/* Returns whether it names a constructor, a destructor or a conversion: those have no return type. */
static bool um_unqualified_name(um_name_t *m)
{
    char c = um_peek(m, 0), next = um_peek(m, 1);
    bool bare = false;

    um_eat(m, 'L'); /* internal linkage */
    if (um_is_digit(um_peek(m, 0))) {
        um_source_name(m);
    } else if (c == 'U' && (next == 't' || next == 'l')) {
        m->at += 2;
        um_unnamed(m, next == 'l');
    } else if ((c == 'C' || c == 'D') && next >= '0' && next <= '5') {
        m->at += 2;
        bare = true;
    } else {
        bare = c == 'c' && next == 'v';
        um_operator_name(m);
    }
    um_abi_tags(m);
    return bare;
}

/* Sa, Sb, Ss, Si, So, Sd: whole names of std. */
static bool um_std_name(um_name_t *m)
{
    char c = um_peek(m, 1);

    if (um_peek(m, 0) != 'S' || c == '\0' || strchr("absiod", c) == NULL)
        return false;
    m->at += 2;
    return true;
}

static um_type_t um_substitution(um_name_t *m)
{
    unsigned n;

    um_expect(m, 'S');
    n = um_seq_id(m, 36);
    return m->failed || n >= m->n_sub ? um_fail(m) : m->sub[n];
}

/* ---- template arguments ---- */

static um_type_t um_template_param(um_name_t *m)
{
    const um_targ_t *arg;
    unsigned n;

    um_expect(m, 'T');
    n = um_seq_id(m, 10);
    if (m->failed)
        return um_plain;
    if (n >= m->targs.n)
        return m->lenient ? um_plain : um_fail(m);
    arg = &m->targs.arg[n];
    if (!arg->pack)
        return arg->type;
    m->pack_count = arg->count;
    return m->pack_element >= 0 && m->pack_element < arg->count
               ? m->targs.pack[arg->first + m->pack_element]
               : um_plain;
}

/* "L type value E", or "L _Z encoding E". */
static void um_literal(um_name_t *m)
{
    um_expect(m, 'L');
    if (um_eat2(m, "_Z")) {
        uint32_t ignored = 0;

        um_encoding(m, NULL, 0, &ignored);
    } else {
        um_type(m);
        while (um_is_digit(um_peek(m, 0)) || (um_peek(m, 0) >= 'a' && um_peek(m, 0) <= 'z') ||
               um_peek(m, 0) == '_')
            m->at++;
    }
    um_expect(m, 'E');
}

/* One argument of `out`, which may be NULL; those in a pack go to the pack. */
static void um_template_arg(um_name_t *m, um_targs_t *out, bool in_pack)
{
    um_type_t type = um_plain;

    if (!um_enter(m))
        return;
    if (um_peek(m, 0) == 'J') {
        um_targ_t *pack = NULL;

        if (in_pack || (out != NULL && out->n == UM_MAX_ARGS)) {
            um_fail(m);
        } else if (out != NULL) {
            pack = &out->arg[out->n++];
            *pack = (um_targ_t){.pack = true, .first = out->n_pack};
        }
        um_eat(m, 'J');
        while (!m->failed && !um_eat(m, 'E'))
            um_template_arg(m, out, true);
        if (pack != NULL)
            pack->count = (uint16_t)(out->n_pack - pack->first);
        m->depth--;
        return;
    }
    if (um_peek(m, 0) == 'L') {
        um_literal(m);
    } else if (um_eat(m, 'X')) { /* of expressions: a literal, or a function's address */
        um_eat2(m, "ad");
        um_literal(m);
        um_expect(m, 'E');
    } else {
        type = um_type(m);
    }
    if (out == NULL) {
        ;
    } else if (in_pack) {
        if (out->n_pack == UM_MAX_PACK)
            um_fail(m);
        else
            out->pack[out->n_pack++] = type;
    } else if (out->n == UM_MAX_ARGS) {
        um_fail(m);
    } else {
        out->arg[out->n++] = (um_targ_t){.type = type};
    }
    m->depth--;
}

/* "I args E". `of_function`: they become what T_ stands for. */
static void um_template_args(um_name_t *m, bool of_function)
{
    if (!um_enter(m))
        return;
    um_expect(m, 'I');
    if (of_function)
        m->targs.n = m->targs.n_pack = 0; /* an argument may refer to an earlier one */
    while (!m->failed && !um_eat(m, 'E'))
        um_template_arg(m, of_function ? &m->targs : NULL, false);
    m->depth--;
}

/* ---- <name> ---- */

typedef struct um_name_kind {
    bool template; /* ends in template arguments: a function then has its return type mangled */
    bool bare;     /* constructor, destructor, conversion: it has none */
} um_name_kind_t;

/* After 'N'. The last prefix is not made a substitution: of a type the caller does that. */
static um_name_kind_t um_nested_name(um_name_t *m, bool of_function)
{
    um_name_kind_t kind = {false, false};
    bool first = true;

    while (um_peek(m, 0) == 'r' || um_peek(m, 0) == 'V' || um_peek(m, 0) == 'K')
        m->at++;
    if (um_peek(m, 0) == 'R' || um_peek(m, 0) == 'O')
        m->at++;
    while (!m->failed && !um_eat(m, 'E')) {
        char c = um_peek(m, 0);
        bool known = false; /* a substitution already */

        kind.template = false;
        if (c == 'I' && !first) {
            um_template_args(m, of_function);
            kind.template = true;
        } else if (c == 'S' && first && um_eat2(m, "St")) {
            known = true; /* "std" alone never is one */
        } else if (c == 'S' && first && um_std_name(m)) {
            known = true;
        } else if (c == 'S' && first) {
            um_substitution(m);
            known = true;
        } else if (c == 'T' && first) {
            um_template_param(m);
        } else if (c == 'D' && (um_peek(m, 1) == 't' || um_peek(m, 1) == 'T')) {
            um_fail(m);
        } else {
            kind.bare = um_unqualified_name(m);
        }
        um_eat(m, 'M'); /* of a data member's initialiser */
        first = false;
        if (!known && um_peek(m, 0) != 'E')
            um_sub_add(m, um_plain);
    }
    return kind;
}

static um_name_kind_t um_any_name(um_name_t *m, bool of_function);

/* After 'Z': "encoding E name [discriminator]" or "encoding E s". */
static um_name_kind_t um_local_name(um_name_t *m, bool of_function)
{
    um_name_kind_t kind = {false, false};
    um_targs_t outer = m->targs;
    uint32_t ignored = 0;

    um_encoding(m, NULL, 0, &ignored);
    um_expect(m, 'E');
    m->targs = outer;
    if (um_eat(m, 's')) {
        ;
    } else {
        if (um_eat(m, 'd')) { /* inside a default argument */
            um_number(m);
            um_expect(m, '_');
        }
        kind = um_any_name(m, of_function);
    }
    if (um_eat(m, '_')) { /* "_n" or "__nn_" */
        if (um_eat(m, '_')) {
            um_number(m);
            um_expect(m, '_');
        } else if (um_is_digit(um_peek(m, 0))) {
            m->at++;
        }
    }
    return kind;
}

static um_name_kind_t um_any_name(um_name_t *m, bool of_function)
{
    um_name_kind_t kind = {false, false};

    if (!um_enter(m))
        return kind;
    if (um_eat(m, 'N')) {
        kind = um_nested_name(m, of_function);
    } else if (um_eat(m, 'Z')) {
        kind = um_local_name(m, of_function);
    } else {
        bool known = false;

        if (um_peek(m, 0) == 'S' && um_peek(m, 1) != 't') {
            if (!um_std_name(m))
                um_substitution(m);
            known = true;
        } else {
            um_eat2(m, "St");
            kind.bare = um_unqualified_name(m);
        }
        if (um_peek(m, 0) == 'I') {
            if (!known)
                um_sub_add(m, um_plain);
            um_template_args(m, of_function);
            kind.template = true;
        }
    }
    m->depth--;
    return kind;
}

/* ---- <type> ---- */

/* "D" and a letter. */
static um_type_t um_d_type(um_name_t *m)
{
    um_type_t type;

    switch (um_peek(m, 1)) {
    case 'p': /* a pack expansion that is not a parameter */
        m->at += 2;
        type = um_type(m);
        um_sub_add(m, type);
        return type;
    case 'v': /* vector: "Dv n _ type" */
        m->at += 2;
        if (um_number(m) < 0)
            return um_fail(m);
        um_expect(m, '_');
        um_eat(m, 'p');
        um_type(m);
        um_sub_add(m, um_plain);
        return um_plain;
    case 'F': /* _FloatN, std::bfloat16_t: "DF n _", "DF16b" */
        m->at += 2;
        um_number(m);
        if (!um_eat(m, '_') && !um_eat(m, 'b') && !um_eat(m, 'x'))
            return um_fail(m);
        return um_floating;
    case 'o': /* noexcept function */
        m->at += 2;
        return um_peek(m, 0) == 'F' ? um_type(m) : um_fail(m);
    case 'd': /* decimal and half */
    case 'e':
    case 'f':
    case 'h':
        m->at += 2;
        return um_floating;
    case 'i':
    case 's':
    case 'u':
    case 'a':
    case 'c':
    case 'n':
        m->at += 2;
        return um_plain;
    default: /* decltype and what is newer */
        return um_fail(m);
    }
}

/* "F [Y] return parameters [ref] E"; yields the function type itself. */
static um_type_t um_function_type(um_name_t *m)
{
    um_expect(m, 'F');
    um_eat(m, 'Y');
    while (!m->failed && !um_eat(m, 'E')) {
        if ((um_peek(m, 0) == 'R' || um_peek(m, 0) == 'O') && um_peek(m, 1) == 'E')
            m->at++;
        else
            um_type(m);
    }
    um_sub_add(m, um_plain);
    return um_plain;
}

static um_type_t um_array_type(um_name_t *m)
{
    um_type_t element, type = um_plain;

    um_expect(m, 'A');
    um_number(m);
    um_expect(m, '_');
    element = um_type(m);
    type.is_const = element.is_const;
    um_sub_add(m, type);
    return type;
}

static um_type_t um_qualified_type(um_name_t *m)
{
    bool is_const = false, function;
    um_type_t type;

    while (um_peek(m, 0) == 'r' || um_peek(m, 0) == 'V' || um_peek(m, 0) == 'K') {
        is_const |= um_peek(m, 0) == 'K';
        m->at++;
    }
    function = um_peek(m, 0) == 'F' || (um_peek(m, 0) == 'D' && um_peek(m, 1) == 'o');
    type = um_type(m);
    if (function) /* the qualifiers of a member function are a part of its type */
        return type;
    type.is_const |= is_const;
    um_sub_add(m, type);
    return type;
}

/* A class, union or enumeration by name, or a template parameter. */
static um_type_t um_named_type(um_name_t *m)
{
    um_type_t type = um_plain;
    char c = um_peek(m, 0), next = um_peek(m, 1);

    if (c == 'T' && (next == 's' || next == 'u' || next == 'e')) { /* struct, union, enum T */
        m->at += 2;
        um_any_name(m, false);
    } else if (c == 'T') {
        type = um_template_param(m);
        um_sub_add(m, type);
        if (um_peek(m, 0) != 'I')
            return type;
        um_template_args(m, false);
    } else if (c == 'S' && next != 't') {
        if (um_std_name(m))
            type = um_plain;
        else
            type = um_substitution(m);
        if (um_peek(m, 0) != 'I')
            return type;
        um_template_args(m, false);
    } else {
        um_any_name(m, false);
    }
    um_sub_add(m, um_plain);
    return um_plain;
}

static um_type_t um_pointer_type(um_name_t *m)
{
    um_type_t to, type = {.pointer = true};

    m->at++;
    to = um_type(m);
    type.to_const = to.is_const;
    um_sub_add(m, type);
    return type;
}

static um_type_t um_type_inner(um_name_t *m)
{
    char c = um_peek(m, 0);

    switch (c) {
    case 'P':
    case 'R':
    case 'O':
        return um_pointer_type(m);
    case 'r':
    case 'V':
    case 'K':
        return um_qualified_type(m);
    case 'A':
        return um_array_type(m);
    case 'F':
        return um_function_type(m);
    case 'M': /* pointer to member: class, member */
        m->at++;
        um_type(m);
        um_type(m);
        um_sub_add(m, um_plain);
        return um_plain;
    case 'D':
        return um_d_type(m);
    case 'C': /* complex, imaginary */
    case 'G':
        m->at++;
        um_type(m);
        um_sub_add(m, um_floating);
        return um_floating;
    case 'U': { /* vendor qualifier, or an unnamed type */
        um_type_t type;

        if (um_peek(m, 1) == 'l' || um_peek(m, 1) == 't')
            return um_named_type(m);
        m->at++;
        um_source_name(m);
        if (um_peek(m, 0) == 'I')
            um_template_args(m, false);
        type = um_type(m);
        um_sub_add(m, type);
        return type;
    }
    case 'u': /* vendor type */
        m->at++;
        um_source_name(m);
        if (um_peek(m, 0) == 'I')
            um_template_args(m, false);
        um_sub_add(m, um_plain);
        return um_plain;
    case 'N':
    case 'Z':
    case 'S':
    case 'T':
        return um_named_type(m);
    default:
        if (um_is_digit(c))
            return um_named_type(m);
        if (c == '\0' || strchr("vwbcahstijlmxynofdegz", c) == NULL)
            return um_fail(m);
        m->at++;
        return strchr("fdeg", c) != NULL ? um_floating : um_plain;
    }
}

static um_type_t um_type(um_name_t *m)
{
    um_type_t type;

    if (!um_enter(m))
        return um_plain;
    type = um_type_inner(m);
    m->depth--;
    return type;
}

/* ---- <encoding> ---- */

static void um_param(um_name_t *m, um_type_t type, uint32_t *flags, uint32_t max, uint32_t *n)
{
    if (*n < max)
        flags[*n] = (type.pointer ? UM_PARAM_POINTER : 0u) |
                    (type.pointer && type.to_const ? UM_PARAM_CONST_POINTER : 0u) |
                    (type.is_float ? UM_PARAM_FLOAT : 0u);
    if (!m->failed)
        (*n)++;
}

/* "Dp pattern": the pattern once for each element of the packs in it. */
static void um_expansion(um_name_t *m, uint32_t *flags, uint32_t max, uint32_t *n)
{
    const char *pattern;
    unsigned subs;
    int count;

    m->at += 2;
    pattern = m->at;
    m->pack_element = 0;
    m->pack_count = -1;
    for (int i = 0;; i++) {
        um_type_t type;

        m->pack_element = i;
        m->at = pattern;
        subs = m->n_sub;
        type = um_type(m);
        count = m->pack_count;
        if (m->failed || count < 0) {
            um_fail(m);
            break;
        }
        if (i < count)
            um_param(m, type, flags, max, n);
        if (i + 1 >= count) {
            um_sub_add(m, um_plain); /* the expansion itself */
            break;
        }
        m->n_sub = subs; /* they count once */
    }
    m->pack_element = -1;
}

/* A function's or a variable's name and, of a function, its parameters: their flags and number. */
static void um_encoding(um_name_t *m, uint32_t *flags, uint32_t max, uint32_t *n)
{
    um_name_kind_t kind;

    if (!um_enter(m))
        return;
    kind = um_any_name(m, true);
    if (kind.template && !kind.bare)
        um_type(m);
    while (!m->failed && m->at < m->end && *m->at != 'E' && *m->at != '.') {
        if (um_peek(m, 0) == 'D' && um_peek(m, 1) == 'p')
            um_expansion(m, flags, max, n);
        else if (*n == 0 && um_peek(m, 0) == 'v') { /* "(void)": the only one, or it is nonsense */
            m->at++;
            break;
        } else {
            um_param(m, um_type(m), flags, max, n);
        }
    }
    m->depth--;
}

uint32_t um_mangled_param_flags(const char *mangled, uint32_t *flags, uint32_t max)
{
    um_name_t m = {.pack_element = -1, .pack_count = -1};
    uint32_t n = 0;

    if (mangled == NULL || mangled[0] != '_' || mangled[1] != 'Z')
        return 0;
    m.at = mangled + 2;
    m.end = mangled + strlen(mangled);
    um_encoding(&m, flags, max, &n);
    /* a clone's suffix (".constprop.0") is all that may follow */
    if (m.failed || (m.at != m.end && *m.at != '.'))
        return 0;
    return n;
}
