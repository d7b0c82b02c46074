/* streams - independent buffers, each written by the CPU and worked on in a stream of its own. */
#include "example.h"

#define STREAMS 4

__global__ void scale(float *data, size_t n, float by)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        data[i] *= by;
}

int main(int argc, char **argv)
{
    example_start(argc, argv, 64, 4);
    size_t n = example.bytes / sizeof(float);
    cudaStream_t stream[STREAMS];
    float *data[STREAMS];

    for (int s = 0; s < STREAMS; s++) {
        CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
        data[s] = (float *)example_managed(example.bytes);
    }
    for (int step = 0; step < example.steps; step++) {
        for (int s = 0; s < STREAMS; s++)
            for (size_t i = 0; i < n; i += 16)
                data[s][i] = (float)(s + step);
        double t = example_now_ms();
        for (int s = 0; s < STREAMS; s++) {
            if (example.hand)
                example_prefetch(data[s], example.bytes, false, stream[s]);
            scale<<<(unsigned)((n + 255) / 256), 256, 0, stream[s]>>>(data[s], n, 2.0f);
            scale<<<(unsigned)((n + 255) / 256), 256, 0, stream[s]>>>(data[s], n, 0.5f);
        }
        for (int s = 0; s < STREAMS; s++)
            CHECK(cudaStreamSynchronize(stream[s]));
        example_time("gpu", t);
        double sum = 0;
        for (int s = 0; s < STREAMS; s++)
            sum += data[s][0] + data[s][n - 16];
        printf("step %d: %.0f\n", step, sum);
    }
    for (int s = 0; s < STREAMS; s++) {
        example_free(data[s], example.bytes);
        CHECK(cudaStreamDestroy(stream[s]));
    }
    return example_end();
}
