/*
 * headers.h - NVIDIA's headers, whose enumerators are not ISO C, included without their warnings.
 */
#ifndef UM_CUDA_HEADERS_H
#define UM_CUDA_HEADERS_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cuda.h>
#include <cupti.h>
#pragma GCC diagnostic pop

#endif
