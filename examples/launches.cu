/* launches - no managed memory at all, so that umrt never looks at a launch: what one costs, which umrt
 * must not change. */
#include "example.h"

#define CALLS 500 /* fewer than the driver queues without waiting */

__global__ void tick(unsigned *counter, int a, int b, int c)
{
    if (threadIdx.x == 0)
        *counter += (unsigned)(a + b + c);
}

/* About 50 us of work: a kernel as real programs have them. */
__global__ void work(unsigned *counter, long long cycles)
{
    long long end = clock64() + cycles;

    while (clock64() < end)
        ;
    if (threadIdx.x == 0)
        *counter += 1;
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 1, 200000);
    unsigned *counter, total;

    CHECK(cudaMalloc(&counter, sizeof(*counter)));
    CHECK(cudaMemset(counter, 0, sizeof(*counter)));
    for (int batch = 0; batch < 10; batch++) {
        double t = example_now_ms();
        for (int step = 0; step < example.steps / 10; step++)
            tick<<<1, 32>>>(counter, 1, 2, 3);
        CHECK(cudaDeviceSynchronize());
        example_time("loop", t);

        t = example_now_ms();
        for (int step = 0; step < example.steps / 100; step++)
            work<<<1, 32>>>(counter, 90000);
        CHECK(cudaDeviceSynchronize());
        example_time("work", t);

        /* What the call alone takes: the GPU is kept busy meanwhile, and its queue is never full. */
        work<<<1, 32>>>(counter, 20000000);
        t = example_now_ms();
        for (int step = 0; step < CALLS; step++)
            tick<<<1, 32>>>(counter, 1, 2, 3);
        example_time("call", t);
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaMemcpy(&total, counter, sizeof(total), cudaMemcpyDeviceToHost));
    printf("%u\n", total);
    CHECK(cudaFree(counter));
    return example_end();
}
