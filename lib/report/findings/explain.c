#include "explain.h"

#include <stddef.h>
#include <string.h>

const um_explanation_t um_explanations[] = {
    {"ping-pong",
     "Pages of 64 KiB that went to the GPU by fault, back to the CPU by fault, and so on, at least "
     "three changes of direction. Moves that the program asked for do not count.",
     "Each way costs a fault: the kernel stands still for it on the GPU, the thread on the CPU "
     "(about "
     "65 us for 0.7 MiB). Where the driver notices, it holds processors back on top.",
     "Data that each side uses once or a few times a round is best kept with the CPU and reached "
     "by "
     "the GPU over the link: preferred location CPU and AccessedBy the GPU, or pinned and mapped "
     "memory. On an H200 that was 1.5 to 2.5 times faster than the best prefetching. Data that the "
     "GPU "
     "goes over many times a round is prefetched instead, to the GPU before the launch and to the "
     "CPU "
     "after it.",
     "Not over the link when the kernel reads the data many times or at random in small pieces "
     "that a "
     "cache does not hold."},
    {"first-touch",
     "GPU faults on pages that nobody had written: nothing had to be moved, and the CPU was never "
     "seen "
     "there. Concluded only from a trace that lost nothing.",
     "The GPU faults page by page for memory that only has to be cleared: 75 ms a GiB on an H200, "
     "against 5.8 ms for a prefetch.",
     "Prefetch the range to the GPU before the kernel that writes it first, or allocate it with "
     "cudaMalloc or from a pool when the CPU never needs it.",
     "Not when the kernel touches a small part of a large allocation: the prefetch populates all "
     "of it."},
    {"demand-faulting",
     "A kernel's data came from the CPU in answer to its GPU faults, and it filled at least half "
     "of the "
     "2 MiB blocks that it touched.",
     "Faults bring 8 to 10 GB/s where the link does 45 to 55, and the kernel waits for them.",
     "Prefetch the data on the kernel's stream before the launch, in pieces of 32 MiB, from two "
     "streams "
     "where it is large.",
     "Not when it does not fit on the GPU, nor for data that is used once: see used-once."},
    {"sparse-faulting",
     "A kernel's data came from the CPU in answer to its GPU faults, a little of each 2 MiB block.",
     "Each fault brings 64 KiB and more for a few bytes.",
     "Let the GPU read it over the link: preferred location CPU and AccessedBy the GPU. Or "
     "prefetch all "
     "of it where it is used often and fits.",
     "Not when later kernels use the rest of it, too: then bring it whole."},
    {"host-read-tail", "The CPU took results back by page faults, and no GPU wanted them again.",
     "About 65 us a fault, three faults a block of 2 MiB, one after another, on the thread that "
     "reads.",
     "Prefetch the results to the CPU on the stream that makes them, after the last launch and "
     "before "
     "the wait.",
     "Not when the CPU looks at a small part of it: fault in that part."},
    {"false-sharing",
     "A CPU fault on one region took bytes of another region with it, because both lie in one "
     "page.",
     "Each takes the other's data along; what should stay on the GPU travels with a counter of the "
     "CPU.",
     "Give each buffer pages of its own: sizes rounded up to 64 KiB, or small ones by value or in "
     "pinned "
     "memory.",
     "Not when both buffers are always used by the same side at the same time."},
    {"thrashing",
     "The driver's own detector named pages as thrashing (three faults in half a millisecond from "
     "different processors) or held processors back because of it.",
     "A processor that is held back does nothing; pinned pages are then reached over the link for "
     "150 "
     "ms at a time.",
     "Decide where the range lives: a preferred location, and AccessedBy for the others; or make "
     "the "
     "sides take turns.",
     "Not when it happened once at the start."},
    {"allocation-churn",
     "At least eight allocations of one kind (label, or place and size) that came after a free of "
     "the "
     "same kind.",
     "Each new managed region faults again from nothing; cudaMallocManaged and cudaFree also wait "
     "for "
     "the GPU.",
     "Keep the buffer outside of the loop, or take it from a stream-ordered pool (cudaMallocAsync) "
     "whose "
     "release threshold is set. For scratch memory of the GPU alone that was 13 to 50 times faster "
     "on "
     "an H200.",
     "Not when the CPU must touch it: pool memory is the device's."},
    {"never-on-cpu",
     "Managed memory in which no sign of the CPU was seen, in a trace that recorded CPU faults and "
     "lost "
     "nothing.",
     "It faults on first touch and can be evicted, for a freedom that nobody uses.",
     "cudaMalloc, or cudaMallocAsync where it lives shortly.",
     "Not when the CPU touches it in other runs, or when it is larger than the GPU's memory."},
    {"pageable-copy",
     "cudaMemcpy from or to host memory that is not pinned; small ones around every round of "
     "launches "
     "are told apart.",
     "The driver copies twice, through a buffer of its own, and an asynchronous call waits all the "
     "same.",
     "Pin the host buffer (cudaMallocHost, cudaHostRegister), or make it managed and prefetch it. "
     "A flag "
     "that is looked at every round belongs in mapped memory.",
     "Not for copies of a few KiB at the start, nor when pinning would take much of the host's "
     "memory."},
    {"used-once",
     "A managed region that the CPU writes and that one launch takes; it came to the GPU by fault "
     "and "
     "never went back.",
     "The pages are moved, by fault, to be read once.",
     "Pinned and mapped memory, or preferred location CPU with AccessedBy: the GPU reads it over "
     "the "
     "link at the rate of a copy, without one. Or cudaMalloc and a copy from pinned memory.",
     "Not when the kernel reads each byte several times."},
    {"cyclic-sweep",
     "Data was evicted and came back in order of address, sweep after sweep: it is more than the "
     "GPU "
     "holds.",
     "The driver evicts what moved in first, which is what the next sweep needs first: all of it "
     "moves "
     "in every sweep, however little too much it is.",
     "Keep on the GPU what fits (preferred location GPU) and map the rest (preferred location CPU, "
     "AccessedBy). Or sweep to and fro: the second sweep then begins with what is still there.",
     "Not when most of the data is too much: then map or stream all of it."},
    {"eviction", "Data was pushed out of the GPU to make room, and came back later.",
     "Each block goes out and comes in again by fault; everything else waits behind it.",
     "Work on less at once; prefetch nothing that is not used soon; map what is used least, so "
     "that it "
     "takes no room.",
     "Not when it happens once, between two phases of the program."},
    {"not-evictable",
     "Memory that cannot be evicted (cudaMalloc, pools, mapped physical memory) took a quarter of "
     "the "
     "GPU or more while managed memory was evicted and came back.",
     "Managed data only ever evicts managed data: it has what the others leave.",
     "Free or trim what is not in use before the phase that needs the room, or make seldom used "
     "buffers "
     "managed, so that they can leave.",
     "Not when those buffers are used all the time: then work on less managed data at once, or map "
     "what is used least (cyclic-sweep and eviction say how)."},
    {"read-mostly-written", "GPU faults for writing on a range for which ReadMostly held.",
     "Each write first takes all other copies back: 140 times slower than without the advice "
     "(H200).",
     "Give the advice after the last write, and take it away (UnsetReadMostly) before the next.",
     "A single write to a table that is read for minutes does no harm."},
    {"wrong-location",
     "A preferred location where nobody works: the CPU, while only launches took it; a GPU, while "
     "the "
     "CPU kept taking it back; or another GPU than the one that uses it.",
     "Preferred on the CPU means that every launch reads over the link, and no prefetch mends it. "
     "Preferred on a GPU does not keep the CPU from moving it.",
     "Prefer it where most accesses come from, or take the advice away.",
     "What CPU and GPU use in turns is right on the CPU: accesses there do not fault, so umrt "
     "cannot see "
     "them and says 50 %."},
    {"gpu-bounce", "Blocks of 2 MiB moved from one GPU to another, and on again.",
     "Each move is a fault on the GPU that needs the data and takes it from the one that works on "
     "it.",
     "Split the data so that each GPU has its own part, keep shared parts on one GPU and map them "
     "for "
     "the others (AccessedBy), or ReadMostly for what is only read.",
     "Not when the work itself moves from GPU to GPU once a phase."},
    {"late-prefetch", "The program prefetched a range, and a kernel still faulted on it.",
     "The call is paid and the faults are, too; the driver serves both at once.",
     "Prefetch earlier, on the stream of the kernel or with an event behind it.",
     "A few faults at the front of a prefetch that races its kernel are meant."},
    {"redundant-prefetch",
     "Half or more of what a call prefetched was there already, by the moves that were seen.",
     "A call costs about a launch, and 1.4 ms a GiB that is resident.",
     "Prefetch only after the other side has had the data.",
     "Not worth a line of code where the call is made once."},
    {"wasted-prefetch",
     "What a call had brought to the GPU left it again, or was freed, before a launch that takes "
     "the "
     "region.",
     "The link moved it twice for nothing, and something else may have had to make room.",
     "Leave the call out, or prefetch the part that the next kernel takes.",
     "Kernels that reach the data through pointers in memory are not seen to take it: check that "
     "first."},
    {"harmful-prefetch",
     "Right behind a prefetch, before anything was launched or waited for, as much as half of its "
     "bytes "
     "were pushed out of the GPU.",
     "What was pushed out comes back by fault when it is needed.",
     "Prefetch at most what is free (cudaMemGetInfo), in the order of use.",
     "Not when what left is not needed any more."},
    {"redundant-advice", "Eight calls or more that advise what holds already.",
     "Each walks the pages of its range: 16 to 89 ms a GiB the first time, less later, never "
     "nothing.",
     "Advise once, after the allocation.",
     "Not where a range is freed and allocated again in between."},
    {"pool-threshold",
     "Allocations from a stream-ordered pool that came after a free and a wait, eight or more.",
     "By default a pool gives its memory back at every wait, and maps it again at the next "
     "allocation.",
     "Set cudaMemPoolAttrReleaseThreshold of the pool, once.",
     "The trace does not say what the threshold is: look whether the program has set it. Not where "
     "other "
     "processes need the memory in between."},
    {"pinned-pressure",
     "Half of the host's memory or more was pinned at once (of its control group's, where that is "
     "less).",
     "Pinned memory cannot be reclaimed: page cache and other processes have the rest, and a "
     "container "
     "is killed at its limit. Pinning itself costs about as much as copying.",
     "Pin two or three pieces and use them in turns.",
     "Not on a node that runs nothing else and reads its input once."},
    {"lost-records",
     "The trace says that records are missing: a queue was full, or CUPTI dropped them.",
     "Every count is a lower bound, and nothing can be concluded from what is not there.",
     "Record a shorter run, a smaller problem, or fewer kinds of events.",
     "Large findings stand all the same."},
    {"tracing-off",
     "GPU or CPU page faults, or all of unified memory, were not recorded: an option was off, or "
     "the "
     "machine cannot do it.",
     "Findings that need them cannot be made; no findings then means nothing.",
     "Record with umrt record, or with nsys profile --cuda-um-gpu-page-faults=true "
     "--cuda-um-cpu-page-faults=true.",
     "Where the platform has no unified memory tracing there is nothing to switch on."},
    {NULL, NULL, NULL, NULL, NULL},
};

const um_explanation_t *um_explain(const char *kind)
{
    for (const um_explanation_t *e = um_explanations; e->kind; e++) {
        if (!strcmp(e->kind, kind))
            return e;
    }
    return NULL;
}
