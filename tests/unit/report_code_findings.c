#include "report_code.h"

#include <string.h>

um_report_t *code_report(void)
{
    um_report_t *r = stream_new("code.umt");
    um_event_t launch = {.time_ns = 5000, .type = UM_EV_LAUNCH, .u.launch = {.kernel = 1}};

    stream_put(r, (um_event_t){.type = UM_EV_DEVICE,
                               .u.device = {.name = "NVIDIA H200", .memory_bytes = 48 * MIB}});
    stream_kernel(r, 1, "step(float*)");
    stream_alloc(r, 1, 1, BASE, 64 * MIB, "grid");
    stream_alloc(r, 2, 2, BASE + 64 * MIB, 256 * KIB, "halo");
    stream_alloc(r, 3, 3, BASE + 96 * MIB, 1000, NULL);
    stream_put(r, launch);
    return r;
}

uint32_t code_group(const um_report_t *r, uint32_t region)
{
    uint32_t found = 0;

    for (uint32_t g = 0; g < r->regions.n_groups; g++) {
        if (r->regions.groups[g].first_region == region)
            found = g; /* the one of its label comes behind the one that it was in before */
    }
    return found;
}

bool code_finding(const um_report_t *r, um_change_t change, um_finding_t *out)
{
    *out = (um_finding_t){.kind = um_finding_table, .asks = change, .kernel = 1};
    if (change == UM_CHANGE_RECORD)
        return false; /* a command: no code */
    if (change == UM_CHANGE_NONE)
        return false;
    um_finding_place(out, r, code_group(r, 1), (um_place_t){0});
    if (change != UM_CHANGE_KEEP_PART) {
        um_finding_place(out, r, code_group(r, 2), (um_place_t){0});
        um_finding_place(out, r, code_group(r, 3), (um_place_t){0});
    }
    if (change == UM_CHANGE_MAP) { /* of a part */
        out->n_places = 1;
        out->part_from = 2 * MIB;
        out->part_end = 4 * MIB;
    }
    return true;
}

bool code_dialect(const char *key, const um_dialect_t **dialect, um_cuda_form_t *form)
{
    *form = UM_CUDA_13;
    for (int i = 0; i < UM_CUDA_FORMS; i++) {
        *dialect = um_dialect_cuda((um_cuda_form_t)i);
        if (!strcmp((*dialect)->key, key)) {
            *form = (um_cuda_form_t)i;
            return true;
        }
    }
    *form = UM_CUDA_V2;
    for (int i = UM_DIALECT_CUDA + 1; i < UM_DIALECT_COUNT; i++) {
        *dialect = um_dialect((um_dialect_id_t)i);
        if (!strcmp((*dialect)->key, key))
            return true;
    }
    return false;
}
