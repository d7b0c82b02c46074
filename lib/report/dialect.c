#include "dialect.h"

/* One pattern for all sides; of a whole region only, not of a part. */
#define DO(code, undo)                                                                             \
    {                                                                                              \
        [UM_SIDE_NONE] = { code, undo, false }                                                     \
    }
#define DO_WHOLE(code, undo)                                                                       \
    {                                                                                              \
        [UM_SIDE_NONE] = { code, undo, true }                                                      \
    }

/* call: all before the advice; end: all behind it. */
#define ADVISE(call, advice, undo, end) DO(call advice end, call undo end)
#define EVERY_ADVICE(call, end)                                                                    \
    [UM_DO_PREFER] = ADVISE(call, "SetPreferredLocation", "UnsetPreferredLocation", end),          \
    [UM_DO_ACCESSED_BY] = ADVISE(call, "SetAccessedBy", "UnsetAccessedBy", end),                   \
    [UM_DO_UNSET_READ_MOSTLY] = ADVISE(call, "UnsetReadMostly", "SetReadMostly", end),             \
    [UM_DO_UNSET_PREFER] = ADVISE(call, "UnsetPreferredLocation", "SetPreferredLocation", end)

#define MANAGED(bytes) "cudaMallocManaged((void **)&%v, " bytes ", cudaMemAttachGlobal);"
#define DEFAULT_POOL   "cudaDeviceGetDefaultMemPool(&pool, %d);\n"
#define KEEP(bytes)                                                                                \
    "cudaMemPool_t pool;\nunsigned long long keep = " bytes ";\n" DEFAULT_POOL                     \
    "cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);"

/* What is the same in every version. */
#define SAME_CALLS                                                                                 \
    [UM_DO_ALLOC_DEVICE] = DO_WHOLE("cudaMalloc((void **)&%v, %b);", MANAGED("%b")),               \
    [UM_DO_ALLOC_POOL] = DO_WHOLE("cudaMallocAsync((void **)&%v, %b, %s);\n"                       \
                                  "/* and where it is freed: cudaFreeAsync(%v, %s); */",           \
                                  MANAGED("%b") "\n/* and where it is freed: cudaFree(%v); */"),   \
    [UM_DO_ALLOC_PAGES] = DO_WHOLE(MANAGED("%N"), MANAGED("%b")),                                  \
    [UM_DO_ALLOC_FLAG] = DO("cudaHostAlloc((void **)&flag, sizeof(*flag), cudaHostAllocMapped);",  \
                            "cudaMalloc((void **)&flag, sizeof(*flag));"),                         \
    [UM_DO_ALLOC_STAGE] = DO("cudaMallocHost((void **)&stage, piece);", "cudaFreeHost(stage);"),   \
    [UM_DO_PIN] =                                                                                  \
        DO("cudaHostRegister(host, n, cudaHostRegisterDefault);", "cudaHostUnregister(host);"),    \
    [UM_DO_WAIT] = DO("cudaDeviceSynchronize();", NULL),                                           \
    [UM_DO_KEEP_POOL] = DO(KEEP("~0ULL"), KEEP("0")),                                              \
    [UM_DO_TRIM_POOL] =                                                                            \
        DO("cudaMemPool_t pool;\n" DEFAULT_POOL "cudaMemPoolTrimTo(pool, 0);", NULL),              \
    [UM_DO_ASK_ROOM] = DO("^size_t room, all;\n^cudaMemGetInfo(&room, &all);", NULL),              \
    [UM_DO_DROP_CALL] = DO("/* take out: %c */", "/* put back: %c */"),                            \
    [UM_DO_DROP_REPEATS] = DO("/* take out of the loop: %c */", "/* put back: %c */")

/* v2: what its names end with; where: the target; flags: behind it, of a prefetch. */
#define CUDA_CALLS(v2, where, flags)                                                               \
    [UM_DO_PREFETCH] = DO("cudaMemPrefetchAsync" v2 "(%p, %n, " where flags ", %s);", NULL),       \
    [UM_DO_EARLIER] = DO("cudaMemPrefetchAsync" v2 "(%p, %n, " where flags ", copies);\n"          \
                         "cudaEventRecord(there, copies);\ncudaStreamWaitEvent(%s, there, 0);",    \
                         NULL),                                                                    \
    EVERY_ADVICE("cudaMemAdvise" v2 "(%p, %n, cudaMemAdvise", ", " where ");"), SAME_CALLS

static const um_dialect_t cuda[UM_CUDA_FORMS] = {
    [UM_CUDA_PLAIN] = {.key = "cuda12",
                       .title = "CUDA 11.8 to 12",
                       .to = {CUDA_CALLS("", "%d", "")}},
    [UM_CUDA_V2] = {.key = "cuda12_2",
                    .title = "CUDA 12.2 to 12.9",
                    .to = {CUDA_CALLS("_v2", "%l", ", 0")}},
    [UM_CUDA_13] = {.key = "cuda13", .title = "CUDA 13", .to = {CUDA_CALLS("", "%l", ", 0")}},
};

#define RMM_BUFFER(bytes, memory) "rmm::device_buffer %v(" bytes ", %s, " memory ");"
#define RMM_MANAGED(bytes)                                                                         \
    "^rmm::mr::managed_memory_resource managed;\n" RMM_BUFFER(bytes, "managed")

#define UMPIRE_MANAGER "umpire::ResourceManager::getInstance()"
#define UMPIRE_FROM(resource, bytes)                                                               \
    "%v = static_cast<decltype(%v)>(" UMPIRE_MANAGER ".getAllocator(\"" resource                   \
    "\").allocate(" bytes "));"
/* An allocator that advises what it hands out. */
#define UMPIRE_ADVISED(advice, who)                                                                \
    "auto %v_" advice " = " UMPIRE_MANAGER                                                         \
    ".makeAllocator<umpire::strategy::AllocationAdvisor>(\n"                                       \
    "    \"%v " advice "\", " UMPIRE_MANAGER ".getAllocator(\"UM\"), \"SET_" advice "\", " who     \
    ");\n"                                                                                         \
    "%v = static_cast<decltype(%v)>(%v_" advice ".allocate(%b));"

#define AMREX_IN(arena)                                                                            \
    "amrex::MultiFab %v(ba, dm, ncomp, ngrow, amrex::MFInfo().SetArena(amrex::" arena "()));"

#define KOKKOS_VIEW(space, bytes)                                                                  \
    "Kokkos::View<T *, Kokkos::" space "> %v(\"%v\", " bytes " / sizeof(T));"

#define CUPY_MANAGED                                                                               \
    "^cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)"

static const um_dialect_t dialects[UM_DIALECT_COUNT] =
    {
        [UM_DIALECT_RMM] =
            {
                .key = "rmm",
                .title = "RMM",
                .data = "%v.data()",
                .default_stream = "rmm::cuda_stream_default",
                .to =
                    {
                        [UM_DO_PREFETCH] =
                            DO("rmm::prefetch(%p, %n, rmm::cuda_device_id{%d}, %s);", NULL),
                        [UM_DO_ALLOC_DEVICE] =
                            DO_WHOLE("^rmm::mr::cuda_memory_resource device_memory;\n" RMM_BUFFER(
                                         "%b", "device_memory"),
                                     RMM_MANAGED("%b")),
                        [UM_DO_ALLOC_PAGES] = DO_WHOLE(RMM_MANAGED("%N"), RMM_MANAGED("%b")),
                        [UM_DO_ALLOC_POOL] = DO_WHOLE(
                            "^rmm::mr::cuda_async_memory_resource pool;\n" RMM_BUFFER("%b", "pool"),
                            RMM_MANAGED("%b")),
                    },
            },
        [UM_DIALECT_UMPIRE] =
            {
                .key = "umpire",
                .title = "Umpire",
                .to =
                    {
                        [UM_DO_PREFETCH] = DO_WHOLE(
                            "^camp::resources::Resource "
                            "queue{camp::resources::Cuda::CudaFromStream(%s)};\n" UMPIRE_MANAGER
                            ".prefetch(%p, %d, queue);",
                            NULL),
                        [UM_DO_PREFER] =
                            {[UM_SIDE_CPU] = {UMPIRE_ADVISED("PREFERRED_LOCATION", UMPIRE_MANAGER
                                                             ".getAllocator(\"HOST\")"),
                                              UMPIRE_FROM("UM", "%b"), true},
                             [UM_SIDE_GPU] = {UMPIRE_ADVISED("PREFERRED_LOCATION", "%d"),
                                              UMPIRE_FROM("UM", "%b"), true}},
                        [UM_DO_ALLOC_DEVICE] =
                            DO_WHOLE(UMPIRE_FROM("DEVICE", "%b"), UMPIRE_FROM("UM", "%b")),
                        [UM_DO_ALLOC_PAGES] =
                            DO_WHOLE(UMPIRE_FROM("UM", "%N"), UMPIRE_FROM("UM", "%b")),
                        [UM_DO_ALLOC_POOL] =
                            DO_WHOLE("^auto pool = " UMPIRE_MANAGER
                                     ".makeAllocator<umpire::strategy::QuickPool>(\n"
                                     "^    \"scratch pool\", " UMPIRE_MANAGER
                                     ".getAllocator(\"DEVICE\"));\n"
                                     "%v = static_cast<decltype(%v)>(pool.allocate(%b));",
                                     UMPIRE_FROM("UM", "%b")),
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
                        [UM_DO_ALLOC_DEVICE] =
                            DO_WHOLE(KOKKOS_VIEW("CudaSpace", "%b"),
                                     KOKKOS_VIEW("CudaUVMSpace", "%b")),
                        [UM_DO_ALLOC_POOL] =
                            DO_WHOLE("/* once, outside of the loop */\n" KOKKOS_VIEW("CudaSpace",
                                                                                     "%b"),
                                     KOKKOS_VIEW("CudaUVMSpace", "%b")),
                        [UM_DO_ALLOC_PAGES] =
                            DO_WHOLE(KOKKOS_VIEW("CudaUVMSpace", "%N"),
                                     KOKKOS_VIEW("CudaUVMSpace", "%b")),
                        [UM_DO_ALLOC_FLAG] =
                            DO("Kokkos::View<int, Kokkos::SharedHostPinnedSpace> flag(\"flag\");",
                               "Kokkos::View<int, Kokkos::CudaSpace> flag(\"flag\");"),
                        [UM_DO_WAIT] = DO("Kokkos::fence();", NULL),
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
                            DO_WHOLE(AMREX_IN("The_Device_Arena"), AMREX_IN("The_Managed_Arena")),
                        [UM_DO_ALLOC_POOL] =
                            DO_WHOLE(AMREX_IN("The_Async_Arena"), AMREX_IN("The_Managed_Arena")),
                        [UM_DO_WAIT] = DO("amrex::Gpu::streamSynchronize();", NULL),
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
                        [UM_DO_PREFETCH] =
                            DO("cupy.cuda.runtime.memPrefetchAsync(%p, %n, %d, %s)", NULL),
                        EVERY_ADVICE(
                            "cupy.cuda.runtime.memAdvise(%p, %n, cupy.cuda.runtime.cudaMemAdvise",
                            ", %d)"),
                        [UM_DO_ALLOC_DEVICE] =
                            DO_WHOLE("^cupy.cuda.set_allocator(cupy.cuda.MemoryPool().malloc)",
                                     CUPY_MANAGED),
                        [UM_DO_ALLOC_POOL] =
                            DO_WHOLE("^cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)",
                                     CUPY_MANAGED),
                        [UM_DO_PIN] = DO("host = cupyx.empty_pinned(shape, dtype)",
                                         "host = numpy.empty(shape, dtype)"),
                        [UM_DO_WAIT] = DO("cupy.cuda.Device().synchronize()", NULL),
                        [UM_DO_DROP_CALL] = DO("# take out: %c", "# put back: %c"),
                        [UM_DO_DROP_REPEATS] = DO("# take out of the loop: %c", "# put back: %c"),
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
