#include "dialect.h"

#define ANY [UM_SIDE_NONE]

#define ADVISE(advice, undo)                                                                       \
    {                                                                                              \
        ANY =                                                                                      \
        { "cudaMemAdvise(%p, %n, cudaMemAdvise" advice ", %d);",                                   \
          "cudaMemAdvise(%p, %n, cudaMemAdvise" undo ", %d);",                                     \
          false }                                                                                  \
    }
#define ADVISE_V2(advice, undo)                                                                    \
    {                                                                                              \
        ANY =                                                                                      \
        { "cudaMemAdvise_v2(%p, %n, cudaMemAdvise" advice ", %l);",                                \
          "cudaMemAdvise_v2(%p, %n, cudaMemAdvise" undo ", %l);",                                  \
          false }                                                                                  \
    }
#define ADVISE_13(advice, undo)                                                                    \
    {                                                                                              \
        ANY =                                                                                      \
        { "cudaMemAdvise(%p, %n, cudaMemAdvise" advice ", %l);",                                   \
          "cudaMemAdvise(%p, %n, cudaMemAdvise" undo ", %l);",                                     \
          false }                                                                                  \
    }
#define EVERY_ADVICE(ADVISE)                                                                       \
    [UM_DO_PREFER] = ADVISE("SetPreferredLocation", "UnsetPreferredLocation"),                     \
    [UM_DO_ACCESSED_BY] = ADVISE("SetAccessedBy", "UnsetAccessedBy"),                              \
    [UM_DO_UNSET_READ_MOSTLY] = ADVISE("UnsetReadMostly", "SetReadMostly"),                        \
    [UM_DO_UNSET_PREFER] = ADVISE("UnsetPreferredLocation", "SetPreferredLocation")

#define MANAGED "cudaMallocManaged((void **)&%v, %b, cudaMemAttachGlobal);"
#define DEFAULT_POOL(keep)                                                                         \
    "cudaMemPool_t pool;\nunsigned long long keep = " keep ";\n"                                   \
    "cudaDeviceGetDefaultMemPool(&pool, %d);\n"                                                    \
    "cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);"

/* What is the same in every version. */
#define SAME_CALLS                                                                                 \
    [UM_DO_ALLOC_DEVICE] = {ANY = {"cudaMalloc((void **)&%v, %b);", MANAGED, true}},               \
    [UM_DO_ALLOC_POOL] = {ANY = {"cudaMallocAsync((void **)&%v, %b, %s);\n"                        \
                                 "/* and where it is freed: cudaFreeAsync(%v, %s); */",            \
                                 MANAGED "\n/* and where it is freed: cudaFree(%v); */", true}},   \
    [UM_DO_ALLOC_PAGES] = {ANY = {"cudaMallocManaged((void **)&%v, %N, cudaMemAttachGlobal);",     \
                                  MANAGED, true}},                                                 \
    [UM_DO_ALLOC_FLAG] = {ANY = {"cudaHostAlloc((void **)&flag, sizeof(*flag), "                   \
                                 "cudaHostAllocMapped);",                                          \
                                 "cudaMalloc((void **)&flag, sizeof(*flag));", false}},            \
    [UM_DO_ALLOC_STAGE] = {ANY = {"cudaMallocHost((void **)&stage, piece);",                       \
                                  "cudaFreeHost(stage);", false}},                                 \
    [UM_DO_PIN] = {ANY = {"cudaHostRegister(host, n, cudaHostRegisterDefault);",                   \
                          "cudaHostUnregister(host);", false}},                                    \
    [UM_DO_WAIT] = {ANY = {"cudaDeviceSynchronize();", NULL, false}},                              \
    [UM_DO_KEEP_POOL] = {ANY = {DEFAULT_POOL("~0ULL"), DEFAULT_POOL("0"), false}},                 \
    [UM_DO_TRIM_POOL] = {ANY = {"cudaMemPool_t pool;\ncudaDeviceGetDefaultMemPool(&pool, %d);\n"   \
                                "cudaMemPoolTrimTo(pool, 0);",                                     \
                                NULL, false}},                                                     \
    [UM_DO_ASK_ROOM] = {ANY = {"^size_t room, all;\n^cudaMemGetInfo(&room, &all);", NULL, false}}, \
    [UM_DO_DROP_CALL] = {ANY = {"/* take out: %c */", "/* put back: %c */", false}},               \
    [UM_DO_DROP_REPEATS] = {ANY = {"/* take out of the loop: %c */", "/* put back: %c */", false}}

#define EARLIER_WITH(prefetch)                                                                     \
    {                                                                                              \
        ANY =                                                                                      \
        { prefetch "\ncudaEventRecord(there, copies);\ncudaStreamWaitEvent(%s, there, 0);",        \
          NULL,                                                                                    \
          false }                                                                                  \
    }

static const um_dialect_t cuda[UM_CUDA_FORMS] =
    {
        [UM_CUDA_PLAIN] =
            {
                .key = "cuda12",
                .title = "CUDA 11.8 to 12",
                .to = {[UM_DO_PREFETCH] = {ANY = {"cudaMemPrefetchAsync(%p, %n, %d, %s);", NULL,
                                                  false}},
                       [UM_DO_EARLIER] = EARLIER_WITH("cudaMemPrefetchAsync(%p, %n, %d, copies);"),
                       EVERY_ADVICE(ADVISE),
                       SAME_CALLS},
            },
        [UM_CUDA_V2] =
            {
                .key = "cuda12_2",
                .title = "CUDA 12.2 to 12.9",
                .to = {[UM_DO_PREFETCH] = {ANY = {"cudaMemPrefetchAsync_v2(%p, %n, %l, 0, %s);",
                                                  NULL, false}},
                       [UM_DO_EARLIER] =
                           EARLIER_WITH("cudaMemPrefetchAsync_v2(%p, %n, %l, 0, copies);"),
                       EVERY_ADVICE(ADVISE_V2),
                       SAME_CALLS},
            },
        [UM_CUDA_13] =
            {
                .key = "cuda13",
                .title = "CUDA 13",
                .to = {[UM_DO_PREFETCH] = {ANY = {"cudaMemPrefetchAsync(%p, %n, %l, 0, %s);", NULL,
                                                  false}},
                       [UM_DO_EARLIER] =
                           EARLIER_WITH("cudaMemPrefetchAsync(%p, %n, %l, 0, copies);"),
                       EVERY_ADVICE(ADVISE_13),
                       SAME_CALLS},
            },
};

#define UMPIRE_MANAGER "umpire::ResourceManager::getInstance()"
#define UMPIRE_FROM(resource)                                                                      \
    "%v = static_cast<decltype(%v)>(" UMPIRE_MANAGER ".getAllocator(\"" resource                   \
    "\").allocate(%b));"
/* An allocator that advises what it hands out. */
#define UMPIRE_ADVISED(advice, who)                                                                \
    "auto %v_" advice " = " UMPIRE_MANAGER                                                         \
    ".makeAllocator<umpire::strategy::AllocationAdvisor>(\n"                                       \
    "    \"%v " advice "\", " UMPIRE_MANAGER ".getAllocator(\"UM\"), \"SET_" advice "\", " who     \
    ");\n"                                                                                         \
    "%v = static_cast<decltype(%v)>(%v_" advice ".allocate(%b));"

#define AMREX_IN(arena)                                                                            \
    "amrex::MultiFab %v(ba, dm, ncomp, ngrow, amrex::MFInfo().SetArena(amrex::" arena "()));"

#define CUPY_ADVISE(set, unset)                                                                    \
    {                                                                                              \
        ANY =                                                                                      \
        { "cupy.cuda.runtime.memAdvise(%p, %n, cupy.cuda.runtime.cudaMemAdvise" set ", %d)",       \
          "cupy.cuda.runtime.memAdvise(%p, %n, cupy.cuda.runtime.cudaMemAdvise" unset ", %d)",     \
          false }                                                                                  \
    }

static const um_dialect_t dialects[UM_DIALECT_COUNT] = {
    [UM_DIALECT_RMM] =
        {
            .key = "rmm",
            .title = "RMM",
            .data = "%v.data()",
            .default_stream = "rmm::cuda_stream_default",
            .to =
                {
                    [UM_DO_PREFETCH] = {ANY = {"rmm::prefetch(%p, %n, rmm::cuda_device_id{%d}, "
                                               "%s);",
                                               NULL, false}},
                    [UM_DO_ALLOC_DEVICE] = {ANY = {"^rmm::mr::cuda_memory_resource device_memory;\n"
                                                   "rmm::device_buffer %v(%b, %s, device_memory);",
                                                   "^rmm::mr::managed_memory_resource managed;\n"
                                                   "rmm::device_buffer %v(%b, %s, managed);",
                                                   true}},
                    [UM_DO_ALLOC_PAGES] = {ANY = {"^rmm::mr::managed_memory_resource managed;\n"
                                                  "rmm::device_buffer %v(%N, %s, managed);",
                                                  "^rmm::mr::managed_memory_resource managed;\n"
                                                  "rmm::device_buffer %v(%b, %s, managed);",
                                                  true}},
                    [UM_DO_ALLOC_POOL] = {ANY = {"^rmm::mr::cuda_async_memory_resource pool;\n"
                                                 "rmm::device_buffer %v(%b, %s, pool);",
                                                 "^rmm::mr::managed_memory_resource managed;\n"
                                                 "rmm::device_buffer %v(%b, %s, managed);",
                                                 true}},
                },
        },
    [UM_DIALECT_UMPIRE] =
        {
            .key = "umpire",
            .title = "Umpire",
            .to =
                {
                    [UM_DO_PREFETCH] =
                        {ANY = {"^camp::resources::Resource "
                                "queue{camp::resources::Cuda::CudaFromStream(%s)};\n" UMPIRE_MANAGER
                                ".prefetch(%p, %d, queue);",
                                NULL, true}},
                    [UM_DO_PREFER] = {[UM_SIDE_CPU] = {UMPIRE_ADVISED("PREFERRED_LOCATION",
                                                                      UMPIRE_MANAGER
                                                                      ".getAllocator(\"HOST\")"),
                                                       UMPIRE_FROM("UM"), true},
                                      [UM_SIDE_GPU] = {UMPIRE_ADVISED("PREFERRED_LOCATION", "%d"),
                                                       UMPIRE_FROM("UM"), true}},
                    [UM_DO_ALLOC_DEVICE] = {ANY = {UMPIRE_FROM("DEVICE"), UMPIRE_FROM("UM"), true}},
                    [UM_DO_ALLOC_PAGES] = {ANY = {"%v = static_cast<decltype(%v)>(" UMPIRE_MANAGER
                                                  ".getAllocator(\"UM\").allocate(%N));",
                                                  UMPIRE_FROM("UM"), true}},
                    [UM_DO_ALLOC_POOL] =
                        {ANY = {"^auto pool = " UMPIRE_MANAGER
                                ".makeAllocator<umpire::strategy::QuickPool>(\n"
                                "^    \"scratch pool\", " UMPIRE_MANAGER
                                ".getAllocator(\"DEVICE\"));\n"
                                "%v = static_cast<decltype(%v)>(pool.allocate(%b));",
                                UMPIRE_FROM("UM"), true}},
                },
        },
    [UM_DIALECT_KOKKOS] =
        {
            .key = "kokkos",
            .title = "Kokkos",
            .data = "%v.data()",
            .bytes = "%v.span() * sizeof(*%v.data())",
            .device = "Kokkos::Cuda().cuda_device()",
            .stream = "Kokkos::Cuda().cuda_stream()",
            .default_stream = "Kokkos::Cuda().cuda_stream()",
            .to =
                {
                    [UM_DO_ALLOC_DEVICE] = {ANY = {"Kokkos::View<T *, Kokkos::CudaSpace> "
                                                   "%v(\"%v\", %b / sizeof(T));",
                                                   "Kokkos::View<T *, Kokkos::CudaUVMSpace> "
                                                   "%v(\"%v\", %b / sizeof(T));",
                                                   true}},
                    [UM_DO_ALLOC_POOL] = {ANY = {"/* once, outside of the loop */\n"
                                                 "Kokkos::View<T *, Kokkos::CudaSpace> "
                                                 "%v(\"%v\", %b / sizeof(T));",
                                                 "Kokkos::View<T *, Kokkos::CudaUVMSpace> "
                                                 "%v(\"%v\", %b / sizeof(T));",
                                                 true}},
                    [UM_DO_ALLOC_PAGES] = {ANY = {"Kokkos::View<T *, Kokkos::CudaUVMSpace> "
                                                  "%v(\"%v\", %N / sizeof(T));",
                                                  "Kokkos::View<T *, Kokkos::CudaUVMSpace> "
                                                  "%v(\"%v\", %b / sizeof(T));",
                                                  true}},
                    [UM_DO_ALLOC_FLAG] = {ANY = {"Kokkos::View<int, Kokkos::SharedHostPinnedSpace> "
                                                 "flag(\"flag\");",
                                                 "Kokkos::View<int, Kokkos::CudaSpace> "
                                                 "flag(\"flag\");",
                                                 false}},
                    [UM_DO_WAIT] = {ANY = {"Kokkos::fence();", NULL, false}},
                },
        },
    [UM_DIALECT_AMREX] =
        {
            .key = "amrex",
            .title = "AMReX",
            .data = "%v[mfi].dataPtr()",
            .bytes = "%v[mfi].nBytes()",
            .stream = "amrex::Gpu::gpuStream()",
            .default_stream = "amrex::Gpu::gpuStream()",
            .device = "amrex::Gpu::Device::deviceId()",
            .to =
                {
                    [UM_DO_PREFETCH] =
                        {[UM_SIDE_GPU] = {"amrex::prefetchToDevice(%v, false);", NULL, true},
                         [UM_SIDE_CPU] = {"amrex::prefetchToHost(%v, false);", NULL, true}},
                    [UM_DO_ALLOC_DEVICE] =
                        {ANY = {AMREX_IN("The_Device_Arena"), AMREX_IN("The_Managed_Arena"), true}},
                    [UM_DO_ALLOC_POOL] =
                        {ANY = {AMREX_IN("The_Async_Arena"), AMREX_IN("The_Managed_Arena"), true}},
                    [UM_DO_WAIT] = {ANY = {"amrex::Gpu::streamSynchronize();", NULL, false}},
                },
        },
    [UM_DIALECT_CUPY] =
        {
            .key = "cupy",
            .title = "CuPy",
            .data = "%v.data.ptr",
            .bytes = "%v.nbytes",
            .device = "%v.device.id",
            .stream = "cupy.cuda.get_current_stream().ptr",
            .default_stream = "cupy.cuda.get_current_stream().ptr",
            .python = true,
            .to =
                {
                    [UM_DO_PREFETCH] = {ANY = {"cupy.cuda.runtime.memPrefetchAsync(%p, %n, %d, %s)",
                                               NULL, false}},
                    [UM_DO_PREFER] = CUPY_ADVISE("SetPreferredLocation", "UnsetPreferredLocation"),
                    [UM_DO_ACCESSED_BY] = CUPY_ADVISE("SetAccessedBy", "UnsetAccessedBy"),
                    [UM_DO_UNSET_READ_MOSTLY] = CUPY_ADVISE("UnsetReadMostly", "SetReadMostly"),
                    [UM_DO_UNSET_PREFER] =
                        CUPY_ADVISE("UnsetPreferredLocation", "SetPreferredLocation"),
                    [UM_DO_ALLOC_DEVICE] =
                        {ANY = {"^cupy.cuda.set_allocator(cupy.cuda.MemoryPool()."
                                "malloc)",
                                "^cupy.cuda.set_allocator(cupy.cuda.MemoryPool("
                                "cupy.cuda.malloc_managed).malloc)",
                                true}},
                    [UM_DO_ALLOC_POOL] = {ANY = {"^cupy.cuda.set_allocator(cupy.cuda."
                                                 "MemoryAsyncPool().malloc)",
                                                 "^cupy.cuda.set_allocator(cupy.cuda.MemoryPool("
                                                 "cupy.cuda.malloc_managed).malloc)",
                                                 true}},
                    [UM_DO_PIN] = {ANY = {"host = cupyx.empty_pinned(shape, dtype)",
                                          "host = numpy.empty(shape, dtype)", false}},
                    [UM_DO_WAIT] = {ANY = {"cupy.cuda.Device().synchronize()", NULL, false}},
                    [UM_DO_DROP_CALL] = {ANY = {"# take out: %c", "# put back: %c", false}},
                    [UM_DO_DROP_REPEATS] = {ANY = {"# take out of the loop: %c", "# put back: %c",
                                                   false}},
                },
        },
};

const um_dialect_t *um_dialect(um_dialect_id_t id)
{
    return id == UM_DIALECT_CUDA ? &cuda[UM_CUDA_PLAIN] : &dialects[id];
}

const um_dialect_t *um_dialect_cuda(um_cuda_form_t form)
{
    return &cuda[form];
}

const um_pattern_t *um_dialect_pattern(const um_dialect_t *dialect, const um_fix_step_t *step)
{
    const um_pattern_t *of = dialect->to[step->action];
    const um_pattern_t *pattern = of[step->to].code ? &of[step->to] : &of[UM_SIDE_NONE];

    return !pattern->code || (pattern->whole_only && !step->whole && step->group != UM_NO_INDEX)
               ? NULL
               : pattern;
}
