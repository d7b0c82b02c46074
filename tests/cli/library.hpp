/* As much of RMM, Umpire, Kokkos and AMReX as the code for them uses, with their signatures: a compiler
 * then knows whether a call would fit. Nothing of it runs. */
#include <cstddef>
#include <string>
#include <type_traits>

extern int other_device;
extern unsigned long n, rest, piece;
extern cudaStream_t copies;
extern cudaEvent_t there;
extern float *host, *stage;

namespace rmm {
struct cuda_device_id { explicit constexpr cuda_device_id(int) noexcept {} };
struct cuda_stream_view { constexpr cuda_stream_view(cudaStream_t) noexcept {} operator cudaStream_t() const; };
static const cuda_stream_view cuda_stream_default{nullptr};
namespace mr {
struct cuda_memory_resource {};
struct managed_memory_resource {};
struct cuda_async_memory_resource {};
struct any { template <class R> any(R &) {} };
}
struct device_buffer {
    device_buffer(std::size_t, cuda_stream_view, mr::any);
    void *data();
};
void prefetch(void const *, std::size_t, cuda_device_id, cuda_stream_view);
}

namespace camp { namespace resources {
struct Cuda { static Cuda CudaFromStream(cudaStream_t, int = 0); };
struct Resource { explicit Resource(Cuda); };
} }

namespace umpire {
struct Allocator { void *allocate(std::size_t); };
namespace strategy {
struct AllocationAdvisor {
    AllocationAdvisor(const std::string &, int, Allocator, const std::string &, int = 0);
    AllocationAdvisor(const std::string &, int, Allocator, const std::string &, Allocator, int = 0);
};
struct QuickPool { QuickPool(const std::string &, int, Allocator); };
}
struct ResourceManager {
    static ResourceManager &getInstance();
    Allocator getAllocator(const std::string &);
    template <class S, class... A> Allocator makeAllocator(const std::string &name, A &&...a)
    {
        static_assert(std::is_constructible<S, std::string, int, A...>::value, "no such strategy");
        (void)name;
        (void)sizeof...(a);
        return {};
    }
    void prefetch(void *, int, camp::resources::Resource &);
};
}

namespace Kokkos {
struct CudaSpace {};
struct CudaUVMSpace {};
struct SharedHostPinnedSpace {};
struct Cuda { cudaStream_t cuda_stream() const; int cuda_device() const; };
void fence();
template <class T, class Space> struct View {
    explicit View(const std::string &, std::size_t = 0);
    std::remove_pointer_t<T> *data() const;
    std::size_t span() const;
};
}
typedef double T;

namespace amrex {
struct Arena;
Arena *The_Device_Arena();
Arena *The_Managed_Arena();
Arena *The_Async_Arena();
struct BoxArray {};
struct DistributionMapping {};
struct MFInfo { MFInfo &SetArena(Arena *) noexcept; };
struct MFIter {};
struct FArrayBox { double *dataPtr(int = 0) noexcept; std::size_t nBytes() const noexcept; };
struct MultiFab {
    FArrayBox &operator[](const MFIter &) const noexcept;
    MultiFab(const BoxArray &, const DistributionMapping &, int, int, const MFInfo &);
};
void prefetchToDevice(const MultiFab &, bool = true);
void prefetchToHost(const MultiFab &, bool = true);
namespace Gpu {
cudaStream_t gpuStream() noexcept;
void streamSynchronize();
struct Device { static int deviceId() noexcept; };
}
}
extern amrex::BoxArray ba;
extern amrex::DistributionMapping dm;
extern int ncomp, ngrow;

#if defined(FOR_rmm)
extern rmm::device_buffer grid, halo, p, p1;
extern rmm::cuda_stream_view stream;
extern int *flag;
#elif defined(FOR_kokkos)
extern Kokkos::View<float *, Kokkos::CudaUVMSpace> grid, halo, p, p1;
#elif defined(FOR_amrex)
extern int *flag;
extern amrex::MultiFab grid, halo, p, p1;
extern amrex::MFIter mfi;
#else
extern float *grid, *halo, *p, *p1;
extern cudaStream_t stream;
extern int *flag;
#endif
