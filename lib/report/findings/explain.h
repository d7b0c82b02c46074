/*
 * explain.h - the page of each kind of finding: what `umrt explain KIND` says. Static text.
 */
#ifndef UM_EXPLAIN_H
#define UM_EXPLAIN_H

typedef struct um_explanation {
    const char *kind;   /* its name in um_finding_table */
    const char *what;   /* it is, and how umrt knows it */
    const char *why;    /* it costs */
    const char *fix;    /* how to mend it */
    const char *unless; /* when not to */
} um_explanation_t;

extern const um_explanation_t um_explanations[]; /* ends with kind == NULL */

const um_explanation_t *um_explain(const char *kind); /* NULL = there is none */

#endif
