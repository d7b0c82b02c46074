#include "planted_scene.h"

#define KIB  (UINT64_C(1) << 10)
#define HOST UM_DEVICE_HOST

#define R UM_ACCESS_READ
#define W UM_ACCESS_WRITE

static const uint32_t structures[UM_PLANTED_DRAWS] = {
    UM_SCENE_SLICED | UM_SCENE_LOOSE | UM_SCENE_EVERY_ROUND,
    UM_SCENE_JOINT | UM_SCENE_STREAMS | UM_SCENE_BACKWARD | UM_SCENE_HOST_PIECES | UM_SCENE_AROUND,
    UM_SCENE_MANY_KERNELS | UM_SCENE_ZIPPED | UM_SCENE_HOST_BACK | UM_SCENE_NOW_AND_AGAIN,
    2 * UM_SCENE_NOW_AND_AGAIN - 1,
};

uint64_t um_scene_between(um_scene_t *s, uint64_t least, uint64_t most)
{
    return least + um_gen_random(s->gen, most - least + 1);
}

uint64_t um_scene_odd(uint64_t bytes)
{
    return bytes / UM_PAGE_BYTES * UM_PAGE_BYTES;
}

uint32_t um_scene_kernel(um_scene_t *s, um_access_kind_t kind, uint32_t pointers)
{
    static const char *const name[3][2] = {{"_ZN4heat6gatherEPKfm", "_ZN4heat4stepEPfm"},
                                           {"_ZN4heat4scanEPKfm", "_ZN4heat5relaxEPfm"},
                                           {"_ZN4heat6reduceEPKfm", "_ZN4heat7advanceEPfm"}};
    static const char *const params[2] = {"cccccv", "pppppv"};
    uint32_t turn = s->structure & UM_SCENE_MANY_KERNELS ? s->launches % 3 : 0;
    uint32_t *id = &s->kernel[turn][kind == W][pointers];

    if (!*id)
        *id = um_gen_kernel(s->gen, name[turn][kind == W],
                            params[kind == W] + UM_SCENE_BUFFERS - pointers);
    return *id;
}

void um_scene_launch(um_scene_t *s, um_access_kind_t kind, uint32_t pointers, uint64_t bytes,
                     int32_t device)
{
    uint32_t stream = s->structure & UM_SCENE_STREAMS ? s->launches % 3 : 0;

    um_gen_launch(s->gen, um_scene_kernel(s, kind, pointers), stream, device, bytes / 4);
    s->launches++;
}

void um_scene_one(um_scene_t *s, um_access_kind_t kind, uint32_t region, uint64_t at,
                  uint64_t bytes, int32_t device)
{
    um_scene_launch(s, kind, 1, bytes, device);
    um_gen_arg(s->gen, 0, region, at);
    um_gen_access(s->gen, kind, region, at, bytes, UM_GEN_AFTER);
    um_gen_end(s->gen);
}

/* ---- the healthy rest -------------------------------------------------------------------------- */

void um_scene_on_device(um_scene_t *s, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        um_gen_launch(s->gen, um_scene_kernel(s, W, 1), 0, 0, s->busy_bytes / 4);
        um_gen_arg(s->gen, 0, s->busy, 0);
        um_gen_end(s->gen);
    }
}

static void rest(um_scene_t *s)
{
    um_scene_on_device(s, 1 + (uint32_t)um_gen_random(s->gen, 3));
    um_gen_host(s->gen, W, s->flag, 0, 64);
    um_scene_one(s, R, s->flag, 0, UM_PAGE_BYTES, 0);
    um_scene_one(s, W, s->calm, 0, s->calm_bytes, 0);
}

static void start_rest(um_scene_t *s)
{
    s->busy_bytes =
        um_scene_odd(um_scene_between(s, s->all / 60 + 64 * KIB, s->all / 20 + 64 * KIB));
    s->calm_bytes =
        um_scene_odd(um_scene_between(s, s->all / 40 + 64 * KIB, s->all / 16 + 128 * KIB));
    s->busy = um_gen_memory(s->gen, "work", s->busy_bytes, UM_FAMILY_DEVICE);
    s->flag = um_gen_region(s->gen, "flag", UM_PAGE_BYTES);
    s->calm = um_gen_region(s->gen, "calm", s->calm_bytes);
    um_gen_hint(s->gen, UM_HINT_PREFERRED_LOCATION, HOST, s->flag, 0, UM_PAGE_BYTES, 0);
    um_gen_hint(s->gen, UM_HINT_ACCESSED_BY, 0, s->flag, 0, UM_PAGE_BYTES, 0);
    um_gen_host(s->gen, W, s->calm, 0, s->calm_bytes);
    um_gen_hint(s->gen, UM_HINT_PREFETCH, 0, s->calm, 0, s->calm_bytes, 0);
    if (s->structure & UM_SCENE_AROUND)
        for (uint32_t i = 0; i < 5; i++)
            rest(s);
}

static void end_rest(um_scene_t *s)
{
    if (s->structure & UM_SCENE_AROUND)
        for (uint32_t i = 0; i < 4; i++)
            rest(s);
    um_gen_hint(s->gen, UM_HINT_PREFETCH, HOST, s->calm, 0, s->calm_bytes, 0);
    um_gen_wait(s->gen);
    um_gen_host(s->gen, R, s->calm, 0, s->calm_bytes);
}

/* ---- the data ---------------------------------------------------------------------------------- */

um_scene_t um_scene(um_gen_t *gen)
{
    uint32_t draw = (uint32_t)(um_gen_options(gen)->seed >> 56);
    um_scene_t s = {.gen = gen, .rounds = um_gen_options(gen)->iterations};
    uint64_t left = um_gen_options(gen)->bytes;

    for (uint32_t bit = 1; bit <= UM_SCENE_NOW_AND_AGAIN; bit <<= 1)
        if (structures[draw] & bit && (bit >= UM_SCENE_EVERY_ROUND || um_gen_random(gen, 2)))
            s.structure |= bit;
    s.n = (uint32_t)um_scene_between(&s, 1, UM_SCENE_BUFFERS);
    s.slices = (uint32_t)um_scene_between(&s, 3, 11);
    s.all = left;
    for (uint32_t i = 0; i < s.n; i++) {
        s.bytes[i] = um_scene_odd(i + 1 == s.n ? left : left * um_scene_between(&s, 20, 60) / 100);
        left -= s.bytes[i];
    }
    start_rest(&s);
    return s;
}

void um_scene_buffers(um_scene_t *s, um_family_t family)
{
    static const char *const name[UM_SCENE_BUFFERS] = {"field", "next", "forces", "grid", "halo"};

    for (uint32_t i = 0; i < s->n; i++)
        s->region[i] = um_gen_memory(s->gen, name[i], s->bytes[i], family);
}

um_scene_t um_scene_managed(um_gen_t *gen)
{
    um_scene_t s = um_scene(gen);

    um_scene_buffers(&s, UM_FAMILY_MANAGED);
    return s;
}

void um_scene_release(um_scene_t *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        um_gen_release(s->gen, s->region[i]);
}

static uint64_t slice_at(const um_scene_t *s, uint32_t i, uint32_t k)
{
    return um_scene_odd(s->bytes[i] * k / s->slices);
}

static void slice(um_scene_t *s, um_access_kind_t kind, uint32_t i, uint32_t k, int32_t device)
{
    uint64_t at = slice_at(s, i, k), end = k + 1 == s->slices ? s->bytes[i] : slice_at(s, i, k + 1);

    if (end > at)
        um_scene_one(s, kind, s->region[i], at, end - at, device);
}

static void joint(um_scene_t *s, um_access_kind_t kind, int32_t device)
{
    um_scene_launch(s, kind, s->n, s->all, device);
    for (uint32_t i = 0; i < s->n; i++)
        um_gen_arg(s->gen, i, s->region[i], 0);
    for (uint32_t i = 0; i < s->n; i++)
        um_gen_access(s->gen, kind, s->region[i], 0, s->bytes[i],
                      i % 2 ? UM_GEN_BESIDE : UM_GEN_AFTER);
    um_gen_end(s->gen);
}

void um_scene_gpu(um_scene_t *s, um_access_kind_t kind, int32_t device)
{
    bool backward = s->structure & UM_SCENE_BACKWARD;

    if (s->structure & UM_SCENE_JOINT) {
        joint(s, kind, device);
        return;
    }
    if (s->structure & UM_SCENE_ZIPPED) {
        for (uint32_t k = 0; k < s->slices; k++)
            for (uint32_t i = 0; i < s->n; i++)
                slice(s, kind, i, k, device);
        return;
    }
    for (uint32_t j = 0; j < s->n; j++) {
        uint32_t i = backward ? s->n - 1 - j : j;

        if (s->structure & (UM_SCENE_SLICED | UM_SCENE_BACKWARD))
            for (uint32_t k = 0; k < s->slices; k++)
                slice(s, kind, i, backward ? s->slices - 1 - k : k, device);
        else
            um_scene_one(s, kind, s->region[i], 0, s->bytes[i], device);
        if (s->structure & UM_SCENE_LOOSE)
            um_scene_on_device(s, 1);
    }
}

void um_scene_cpu(um_scene_t *s, um_access_kind_t kind, uint32_t thousandths)
{
    uint32_t pieces = s->structure & (UM_SCENE_HOST_PIECES | UM_SCENE_HOST_BACK) ? s->slices : 1;

    for (uint32_t p = 0; p < pieces; p++)
        for (uint32_t i = 0; i < s->n; i++) {
            uint64_t part = um_scene_odd(s->bytes[i] / 1000 * thousandths) + UM_PAGE_BYTES;
            uint32_t k = s->structure & UM_SCENE_HOST_BACK ? pieces - 1 - p : p;
            uint64_t at, end;

            part = part > s->bytes[i] ? s->bytes[i] : part;
            at = um_scene_odd(part * k / pieces);
            end = k + 1 == pieces ? part : um_scene_odd(part * (k + 1) / pieces);
            if (end > at)
                um_gen_host(s->gen, kind, s->region[i], at, end - at);
        }
}

void um_scene_hint(um_scene_t *s, um_hint_kind_t kind, int32_t device)
{
    for (uint32_t i = 0; i < s->n; i++)
        um_gen_hint(s->gen, kind, device, s->region[i], 0, s->bytes[i], 0);
}

void um_scene_fetch(um_scene_t *s, int32_t device)
{
    um_scene_hint(s, UM_HINT_PREFETCH, device);
}

bool um_scene_again(um_scene_t *s)
{
    uint32_t every = s->structure & UM_SCENE_EVERY_ROUND     ? 1
                     : s->structure & UM_SCENE_NOW_AND_AGAIN ? 3
                                                             : 0;

    if (every && s->round % every == 0)
        rest(s);
    return s->round++ < s->rounds;
}

void um_scene_end(um_scene_t *s)
{
    um_gen_wait(s->gen);
    end_rest(s);
}
