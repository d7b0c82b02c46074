/*
 * target.h - for whom code is written: the CUDA version and the library by which the program has its
 * memory, each with the evidence for it. What is ambiguous is CUDA's own calls.
 */
#ifndef UM_TARGET_H
#define UM_TARGET_H

#include "code.h"

typedef struct um_target {
    uint32_t cuda;      /* as CUDART_VERSION: 12040; 0 = not known; 12000 may be any of 12 */
    bool minor;         /* its second part is known */
    char cuda_why[200]; /* "libcudart.so.12.4.127", "--cuda"; "" = not known */
    /* What kernel names and loaded libraries speak for, where stacks do not. */
    um_dialect_id_t library, other; /* other: not UM_DIALECT_CUDA, it is ambiguous */
    char library_why[160], other_why[160];
} um_target_t;

/* "12.4", "12", "13.0"; false = it is none that CUDA has had, or is older than 11.8. */
bool um_target_parse(const char *text, um_target_t *out);
/* From what the trace says of the program; forced: um_report_options_t.cuda, NULL = nothing. */
um_target_t um_target_of(const um_report_t *report, const char *forced);
/* The form that this version understands; what is not known has the oldest. */
um_cuda_form_t um_target_form(const um_target_t *target);

/* The library by which a finding's buffers are had: by the stacks of their allocation, or else by
 * kernel names and libraries of the trace. `why` names the evidence, or what is ambiguous; "" = there
 * is none, and CUDA's calls it is. */
um_dialect_id_t um_target_dialect(const um_report_t *report, const um_target_t *target,
                                  const struct um_finding *f, char *why, size_t bytes);

/* What a finding asks for in the words of its library, or else of that CUDA: *of. NO_MEMORY. */
um_status_t um_code_for(const um_report_t *report, const struct um_finding *f,
                        const um_target_t *target, um_code_t *out, const um_dialect_t **of);

#endif
