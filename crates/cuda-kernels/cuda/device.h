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
// More copies of a body that computes addresses would need too many registers.
#define UNROLLED_BY_2 _Pragma("unroll 2")
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
DEVICE unsigned short to_brain(float f) {
    u32 u = __float_as_int(f);
    return f != f ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
DEVICE u32 shuffle(u32 v, int lane) { return __shfl_sync(0xffffffffu, v, lane); }
DEVICE float shuffle_xor(float v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
DEVICE double shuffle_xor(double v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
DEVICE i64 shuffle_xor(i64 v, int mask) { return __shfl_xor_sync(0xffffffffu, v, mask); }
// Operations that are rounded one by one: no product is joined with the sum that it is part of.
DEVICE float times_rounded(float a, float b) { return __fmul_rn(a, b); }
DEVICE double times_rounded(double a, double b) { return __dmul_rn(a, b); }
DEVICE float plus_rounded(float a, float b) { return __fadd_rn(a, b); }
DEVICE double plus_rounded(double a, double b) { return __dadd_rn(a, b); }
DEVICE u32 bits_of(float v) { return (u32)__float_as_int(v); }
DEVICE u64 bits_of(double v) { return (u64)__double_as_longlong(v); }
DEVICE float single_of(u32 bits) { return __int_as_float((int)bits); }
DEVICE float infinity() { return __int_as_float(0x7f800000); }
// d += a * b on tensor cores: 16 x 16 by 16 x 8 numbers of 16 bits, sums in single precision. Lanes
// hold fragments as the PTX manual lays them out for mma.m16n8k16.
#if __CUDA_ARCH__ >= 800
#define BRAIN_PRODUCTS 1
#define HALF_PRODUCTS 1
#define MMA(name, type)                                                                            \
    DEVICE void name(float d[4], const u32 a[4], const u32 b[2]) {                                 \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "                \
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                       \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));          \
    }
MMA(mma_half, "f16")
MMA(mma_brain, "bf16")
#elif __CUDA_ARCH__ >= 750
// Compute capability 7.5 multiplies halves alone, and 8 deep.
#define BRAIN_PRODUCTS 0
#define HALF_PRODUCTS 1
DEVICE void mma_half(float d[4], const u32 a[4], const u32 b[2]) {
    UNROLLED
    for (int i = 0; i < 2; i++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
}
#else
// Older ones have no such instruction: tensor_cores.h makes do without.
#define BRAIN_PRODUCTS 0
#define HALF_PRODUCTS 0
#endif
// Four matrices of 8 x 8 numbers of 16 bits in shared memory: each lane says where a row of 16 bytes
// begins, and gets two neighbours of a row; two of a column, if they are turned.
#if __CUDA_ARCH__ >= 750
#define MATRIX_LOADS 1
#define LOAD_MATRICES(name, how)                                                                   \
    DEVICE void name(u32 to[4], const unsigned short* row) {                                       \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0,%1,%2,%3}, [%4];"        \
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])                          \
                     : "r"((u32)__cvta_generic_to_shared(row))                                     \
                     : "memory");                                                                  \
    }
LOAD_MATRICES(load_matrices, "")
LOAD_MATRICES(load_turned, ".trans")
#else
#define MATRIX_LOADS 0
#endif
// 16 bytes into shared memory, zeros from nullptr: they are there when the thread has waited for their
// group, and a barrier shows them to others.
typedef uint4 Piece;
// 16 bytes that nothing writes while the kernel runs: such a load need not wait for stores before it.
DEVICE Piece load_piece(const void* at) {
    Piece v;
    asm("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
}
#if __CUDA_ARCH__ >= 800
DEVICE void copy_async(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(from ? 16 : 0)
                 : "memory");
}
DEVICE void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// All groups but the last N.
template <int N> DEVICE void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#else
DEVICE void copy_async(void* to, const void* from) {
    *(Piece*)to = from ? *(const Piece*)from : Piece{0, 0, 0, 0};
}
DEVICE void copy_commit() {}
template <int N> DEVICE void copy_wait() {}
#endif
// Hopper's products of a warpgroup of four warps: 64 rows by COLS columns, 16 deep, of halves in shared
// memory, where rows of 128 bytes have their pieces swapped. Products are complete when the warpgroup
// has waited for them; other targets have none.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WARPGROUPS 1
DEVICE u32 shared_address(const void* at) { return (u32)__cvta_generic_to_shared(at); }
// The depth lies in rows of 128 bytes.
DEVICE u64 deep_matrix(const unsigned short* at) {
    return (u64)(shared_address(at) >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}
// Rows are the depth: 64 columns lie in 128 bytes, and the next 64 are `apart` bytes from them.
DEVICE u64 wide_matrix(const unsigned short* at, int apart) {
    return (u64)(shared_address(at) >> 4 & 0x3fff) | (u64)(apart / 16) << 16 | 64ull << 32 | 1ull << 62;
}
#define SUMS1(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define SUMS4(i) SUMS1(i), SUMS1(i + 1), SUMS1(i + 2), SUMS1(i + 3)
#define SUMS16(i) SUMS4(i), SUMS4(i + 4), SUMS4(i + 8), SUMS4(i + 12)
// TURNED: whether `b` is a wide matrix.
template <int COLS, int TURNED> DEVICE void warpgroup_mma(float (&d)[COLS / 8][4], u64 a, u64 b);
#define WARPGROUP_MMA(TURNED)                                                                      \
    template <> SPECIAL void warpgroup_mma<64, TURNED>(float (&d)[8][4], u64 a, u64 b) {           \
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"                        \
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "      \
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"\
                     "}, %32, %33, 1, 1, 1, 0, " #TURNED ";"                                       \
                     : SUMS4(0), SUMS4(4)                                                          \
                     : "l"(a), "l"(b));                                                            \
    }                                                                                              \
    template <> SPECIAL void warpgroup_mma<128, TURNED>(float (&d)[16][4], u64 a, u64 b) {         \
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"                       \
                     "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "      \
                     "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "\
                     "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "\
                     "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"\
                     "}, %64, %65, 1, 1, 1, 0, " #TURNED ";"                                       \
                     : SUMS16(0)                                                                   \
                     : "l"(a), "l"(b));                                                            \
    }
WARPGROUP_MMA(0)
WARPGROUP_MMA(1)
// Before the first product: what the registers hold is seen by it. After a wait: nothing reads them early.
template <int N> DEVICE void warpgroup_fence(float (&d)[N][4]) {
    UNROLLED
    for (int i = 0; i < N; i++) asm volatile("" : SUMS1(i)::"memory");
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
DEVICE void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
DEVICE void warpgroup_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
// What the thread wrote into shared memory is seen by products.
DEVICE void show_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Registers of a thread from now on, which all threads of a warpgroup say.
template <int N> DEVICE void fewer_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)); }
template <int N> DEVICE void more_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)); }
// Where shared memory is a multiple of 1024 bytes.
DEVICE unsigned short* swizzled_memory(unsigned char* at) { return (unsigned short*)(at + (-shared_address(at) & 1023)); }
// A barrier in shared memory that some threads arrive at, and others wait for: it completes a phase at
// `count` arrivals, and a wait names the parity of the phase.
DEVICE void barrier_init(u64* at, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(at)), "r"(count) : "memory");
}
DEVICE void barrier_arrive(u64* at) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(at)) : "memory");
}
DEVICE void barrier_wait(u64* at, u32 parity) {
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(shared_address(at)), "r"(parity)
                     : "memory");
}
#else
#define WARPGROUPS 0
#endif
// Changes of numbers that several threads may make, whose order does not matter.
DEVICE void keep_largest(int* at, int v) { atomicMax(at, v); }
DEVICE void count_one(i64* at) { atomicAdd((u64*)at, 1ull); }
// The first one to report is heard; the host reads the word when the operator is complete.
DEVICE void report(u64* status, u64 value) { atomicCAS_system(status, 0ull, value); }
// Of all reports the least is heard, in whatever order threads report.
DEVICE void report_least(u64* status, u64 value) {
    u64 heard = 0;
    ROLLED
    for (;;) {
        u64 seen = atomicCAS_system(status, heard, value);
        if (seen == heard || seen <= value) return;
        heard = seen;
    }
}

#else
#include "host.h"
#endif
