// The kernels of small_sm80.cubin and small_sm90.cubin:
//   nvcc -cubin -arch=sm_80 -o small_sm80.cubin small.cu    (CUDA 13.0)
//   nvcc -cubin -arch=sm_90 -o small_sm90.cubin small.cu
struct Pair {
    float *to;
    const float *from;
    char tag;
};

__global__ void mixed(Pair p, char c, short s, double d, const float *table)
{
    p.to[0] = p.from[c] + (float)(d + s) + table[0];
}

template <class T> __global__ void scale(T *out, const T *in, T by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = in[i] * by;
}

template __global__ void scale<float>(float *, const float *, float, int);

extern "C" __global__ void nothing()
{
}
