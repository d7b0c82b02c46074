/* half - the CPU writes 64 MiB, and every launch updates their second half with 16 MiB that it only
 * reads: what check_deep.sh knows about is touched, and nothing else. Prints a checksum a round. */
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            printf("%s: %s\n", #call, cudaGetErrorString(error));                                  \
            exit(90);                                                                              \
        }                                                                                          \
    } while (0)

__global__ void half(float *data, const float *added, size_t n, size_t n_added)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

    if (i < n)
        data[i] += added[i % n_added];
}

int main()
{
    size_t n = (64u << 20) / sizeof(float), n_added = (16u << 20) / sizeof(float);
    float *data, *added;

    CHECK(cudaMallocManaged(&data, n * sizeof(float)));
    CHECK(cudaMallocManaged(&added, n_added * sizeof(float)));
    for (size_t i = 0; i < n; i++)
        data[i] = (float)(i % 7);
    for (size_t i = 0; i < n_added; i++)
        added[i] = (float)(i % 3);
    for (int round = 0; round < 3; round++) {
        half<<<(unsigned)(n / 2 / 256), 256>>>(data + n / 2, added, n / 2, n_added);
        CHECK(cudaDeviceSynchronize());
    }
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += data[i];
    printf("%.0f\n", sum);
    CHECK(cudaGetLastError());
    CHECK(cudaFree(data));
    CHECK(cudaFree(added));
    return 0;
}
