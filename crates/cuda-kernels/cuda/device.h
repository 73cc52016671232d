// What kernels are written against. NVRTC compiles this for GPUs; a C++ compiler of the host takes
// host.h in its place, so that the same text runs in tests. Nothing of CUDA is included: NVRTC has
// no headers unless a user installs them.
#pragma once
#ifdef __CUDACC_RTC__

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
#define KERNEL extern "C" __global__
#define DEVICE static __device__ __forceinline__
// Before a loop: its body stays as it is.
#define ROLLED _Pragma("unroll 1")
#define UNROLLED _Pragma("unroll")
// Of a template for one type.
#define SPECIAL __device__ __forceinline__
#define DYNAMIC_SHARED(type, name)                                                                 \
    extern __shared__ __align__(16) unsigned char dynamic_bytes[];                                 \
    type* name = (type*)dynamic_bytes
#define ENTRY(name)
#define ENTRY_WITH_BARRIERS(name)

DEVICE float load_half(unsigned short h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
DEVICE unsigned short to_half(float f) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
DEVICE float shuffle_xor(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
DEVICE double shuffle_xor(double v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
DEVICE i64 shuffle_xor(i64 v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
DEVICE float infinity() { return __int_as_float(0x7f800000); }
// The first one to report is heard; the host reads the word when the operator is complete.
DEVICE void report(u64* status, u64 value) { atomicCAS_system(status, 0ull, value); }

#else
#include "host.h"
#endif
