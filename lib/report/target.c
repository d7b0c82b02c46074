#include "target.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "findings/finding.h"
#include "inside.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- version ---------------------------------------------------------------------------------- */

static bool number(const char **text, uint32_t *out)
{
    char *end;
    unsigned long value;

    if (!isdigit((unsigned char)**text))
        return false;
    value = strtoul(*text, &end, 10);
    *text = end;
    *out = value < 1000 ? (uint32_t)value : 1000;
    return true;
}

bool um_target_parse(const char *text, um_target_t *out)
{
    uint32_t major, minor = 0;
    bool has_minor = false;

    if (!number(&text, &major))
        return false;
    if (*text == '.') {
        text++;
        has_minor = number(&text, &minor);
        if (!has_minor)
            return false;
    }
    if (*text || major < 11 || major > 99 || minor > 9 || (major == 11 && has_minor && minor < 8))
        return false;
    *out = (um_target_t){.cuda = major * 1000 + minor * 10, .minor = has_minor};
    return true;
}

/* "libcudart.so.12.4.127" is 12.4, "libcudart.so.12" is 12; all of 11 are "libcudart.so.11.0". */
static bool of_runtime(const um_ev_module_t *module, um_target_t *out)
{
    static const char begins[] = "libcudart.so.";
    const char *slash = strrchr(module->path, '/'), *folder;
    const char *name = slash && slash[1] ? slash + 1 : module->name;
    uint32_t major, minor;
    char text[24];

    if (strncmp(name, begins, sizeof(begins) - 1) != 0)
        return false;
    name += sizeof(begins) - 1;
    if (!number(&name, &major))
        return false;
    snprintf(text, sizeof(text), "%u", major);
    if (*name == '.' && ++name && number(&name, &minor) && *name == '.')
        snprintf(text, sizeof(text), "%u.%u", major, minor);
    else if ((folder = strstr(module->path, "/cuda-")) != NULL) { /* /usr/local/cuda-12.4/lib64 */
        uint32_t in_folder;

        folder += 6;
        if (number(&folder, &in_folder) && in_folder == major && *folder == '.' && ++folder &&
            number(&folder, &minor))
            snprintf(text, sizeof(text), "%u.%u", major, minor);
    }
    return um_target_parse(text, out);
}

static um_target_t version_of(const um_report_t *r, const char *forced)
{
    um_target_t target = {0};

    if (forced && um_target_parse(forced, &target)) {
        snprintf(target.cuda_why, sizeof(target.cuda_why), "--cuda");
        return target;
    }
    for (size_t i = 0; i < um_places_modules(r->places); i++) {
        const um_ev_module_t *module = um_places_module(r->places, i);

        if (of_runtime(module, &target)) {
            snprintf(target.cuda_why, sizeof(target.cuda_why), "%.190s",
                     *module->path ? module->path : module->name);
            return target;
        }
    }
    for (size_t i = 0; r->n_traces && r->traces[0].exe && i < um_places_modules(r->places); i++) {
        const um_ev_module_t *module = um_places_module(r->places, i);

        if (strcmp(module->path, r->traces[0].exe) != 0)
            continue;
        if (um_target_inside(module, &target))
            return target;
        break; /* it is long, and is read once */
    }
    /* The driver serves programs of its own version and of older ones. */
    for (size_t i = 0; i < r->n_traces && i < 1; i++) {
        if (!r->traces[i].cuda || !um_target_parse(r->traces[i].cuda, &target))
            continue;
        if (target.cuda >= 13000) {
            memset(&target, 0, sizeof(target));
            continue;
        }
        target.minor = false;
        snprintf(target.cuda_why, sizeof(target.cuda_why), "the driver's is %.20s",
                 r->traces[i].cuda);
    }
    return target;
}

um_cuda_form_t um_target_form(const um_target_t *target)
{
    if (target->cuda >= 13000)
        return UM_CUDA_13;
    return target->minor && target->cuda >= 12020 ? UM_CUDA_V2 : UM_CUDA_PLAIN;
}

/* ---- library ---------------------------------------------------------------------------------- */

typedef enum um_evidence_of {
    OF_FUNCTION, /* of a frame of the allocation's stack, readable */
    OF_MODULE,   /* of such a frame, or loaded: its name */
    OF_PATH,     /* of such a frame's file, or of a loaded module */
    OF_KERNEL    /* its readable name */
} um_evidence_of_t;

static const struct um_sign {
    um_dialect_id_t dialect;
    um_evidence_of_t of;
    const char *pattern;
} signs[] = {
    {UM_DIALECT_RMM, OF_FUNCTION, "rmm::*"},
    {UM_DIALECT_RMM, OF_MODULE, "librmm.so*"},
    {UM_DIALECT_RMM, OF_PATH, "*/rmm/*.so"},
    {UM_DIALECT_UMPIRE, OF_FUNCTION, "umpire::*"},
    {UM_DIALECT_UMPIRE, OF_MODULE, "libumpire.so*"},
    {UM_DIALECT_KOKKOS, OF_FUNCTION, "Kokkos::*"},
    {UM_DIALECT_KOKKOS, OF_MODULE, "libkokkoscore.so*"},
    {UM_DIALECT_KOKKOS, OF_KERNEL, "*Kokkos::Impl::*"},
    {UM_DIALECT_AMREX, OF_FUNCTION, "amrex::*"},
    {UM_DIALECT_AMREX, OF_MODULE, "libamrex*.so*"},
    {UM_DIALECT_AMREX, OF_KERNEL, "*amrex::*"},
    {UM_DIALECT_CUPY, OF_PATH, "*/cupy/*"},
    {UM_DIALECT_CUPY, OF_PATH, "*/cupy_backends/*"},
    {UM_DIALECT_CUPY, OF_KERNEL, "cupy_*"},
};

/* UM_DIALECT_CUDA: it is a sign of none. */
static um_dialect_id_t sign_of(um_evidence_of_t of, const char *text)
{
    for (size_t i = 0; *text && i < COUNT(signs); i++) {
        if (signs[i].of == of && fnmatch(signs[i].pattern, text, 0) == 0)
            return signs[i].dialect;
    }
    return UM_DIALECT_CUDA;
}

typedef struct um_found {
    um_dialect_id_t dialect;
    char why[160];
} um_found_t;

static void set(um_found_t *found, um_dialect_id_t dialect, const char *format, const char *what)
{
    found->dialect = dialect;
    snprintf(found->why, sizeof(found->why), format, what);
}

/* The library that the program calls is the outermost one: others may lie beneath it. */
static bool of_stack(const um_call_place_t *place, um_found_t *found)
{
    for (size_t i = place->n_spots; i-- > 0;) {
        const um_spot_t *spot = &place->spots[i];
        um_dialect_id_t dialect = sign_of(OF_MODULE, spot->module);

        if (dialect) {
            set(found, dialect, "%.100s in the stack of the allocation", spot->module);
            return true;
        }
        dialect = sign_of(OF_PATH, spot->path);
        if (dialect) {
            set(found, dialect, "%.100s in the stack of the allocation", spot->path);
            return true;
        }
        dialect = *spot->module ? UM_DIALECT_CUDA : sign_of(OF_FUNCTION, spot->text);
        if (dialect) { /* as a foreign trace has it: "function (file:line)" */
            set(found, dialect, "%.100s in the stack of the allocation", spot->text);
            return true;
        }
        for (size_t k = spot->n_lines; k-- > 0;) {
            dialect = sign_of(OF_FUNCTION, spot->lines[k].function);
            if (dialect) {
                set(found, dialect, "%.100s in the stack of the allocation",
                    spot->lines[k].function);
                return true;
            }
        }
    }
    return false;
}

/* A stack whose functions are known, and none of them a library's, is the program's own CUDA call. */
static bool is_readable(const um_call_place_t *place)
{
    for (size_t i = 0; i < place->n_spots; i++) {
        if (place->spots[i].n_lines)
            return true;
    }
    return false;
}

/* What speaks for a library in the whole trace, and for another one. */
static void of_trace(const um_report_t *r, um_found_t *found, um_found_t *other)
{
    for (size_t i = 0; i < um_places_modules(r->places); i++) {
        const um_ev_module_t *module = um_places_module(r->places, i);
        um_dialect_id_t dialect = sign_of(OF_MODULE, module->name);

        if (!dialect)
            dialect = sign_of(OF_PATH, module->path);
        if (dialect && !found->dialect)
            set(found, dialect, "%.100s is loaded", module->name);
        else if (dialect && dialect != found->dialect)
            set(other, dialect, "%.100s is loaded", module->name);
    }
    for (size_t k = 0; k < r->kernels.n_kernels && !other->dialect; k++) {
        char name[160];
        um_dialect_id_t dialect;

        if (r->kernels.kernels[k].copy)
            continue;
        um_finding_kernel(&r->kernels.kernels[k], name, sizeof(name));
        dialect = sign_of(OF_KERNEL, name);
        if (dialect && !found->dialect)
            set(found, dialect, "kernel %.100s", name);
        else if (dialect && dialect != found->dialect)
            set(other, dialect, "kernel %.100s", name);
    }
}

um_target_t um_target_of(const um_report_t *r, const char *forced)
{
    um_target_t target = version_of(r, forced);
    um_found_t found = {0}, other = {0};

    of_trace(r, &found, &other);
    target.library = found.dialect;
    target.other = other.dialect;
    snprintf(target.library_why, sizeof(target.library_why), "%s", found.why);
    snprintf(target.other_why, sizeof(target.other_why), "%s", other.why);
    return target;
}

um_dialect_id_t um_target_dialect(const um_report_t *r, const um_target_t *target,
                                  const um_finding_t *f, char *why, size_t bytes)
{
    um_found_t found = {0}, other = {0};
    bool own = false;

    *why = '\0';
    for (uint32_t i = 0; i < f->n_places; i++) {
        um_found_t here = {0};
        um_call_place_t place;

        if (um_places_site(r->places, r->regions.groups[f->places[i].group].call_site, &place))
            continue;
        if (!of_stack(&place, &here)) {
            own |= is_readable(&place);
            continue;
        }
        if (!found.dialect)
            found = here;
        else if (here.dialect != found.dialect)
            other = here;
    }
    if (!found.dialect && !own) {
        set(&found, target->library, "%s", target->library_why);
        set(&other, target->other, "%s", target->other_why);
    }
    if (found.dialect && (own || other.dialect)) {
        snprintf(why, bytes, "CUDA's calls, because it is ambiguous: %s (%s), %s%s%s%s",
                 um_dialect(found.dialect)->title, found.why,
                 own && !other.dialect ? "and buffers of the program's own"
                                       : um_dialect(other.dialect)->title,
                 other.dialect ? " (" : "", other.why, other.dialect ? ")" : "");
        return UM_DIALECT_CUDA;
    }
    if (found.dialect)
        snprintf(why, bytes, "%s", found.why);
    return found.dialect;
}
