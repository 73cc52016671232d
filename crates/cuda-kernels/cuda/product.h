// Products of matrices, and convolutions as such: 256 threads make a tile of 64 x 64. Elements are
// of type D of types.h. Without tensor cores they are computed in T, 4 x 4 by each thread.
#pragma once
#include "epilogue.h"
#include "tensor_cores.h"

#define TILE 64
#define DEPTH 16
// The tile at (row0, col0) of a product of depth k: a(row, i) and b(i, col) give elements, and
// are asked for those inside only.
template <class T, class A, class B, class Out>
DEVICE void tile(i64 row0, i64 col0, i64 m, i64 n, i64 k, A a, B b, Out out) {
    DYNAMIC_SHARED(T, as);
    T* bs = as + DEPTH * (TILE + 4);
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    T sum[4][4] = {};
    for (i64 k0 = 0; k0 < k; k0 += DEPTH) {
        for (int i = 0; i < 4; i++) {
            int at = threadIdx.x + 256 * i, deep = at % DEPTH, row = at / DEPTH;
            as[deep * (TILE + 4) + row] = row0 + row < m && k0 + deep < k ? a(row0 + row, k0 + deep) : (T)0;
            // Neighbouring threads read neighbouring columns.
            int col = at % TILE;
            deep = at / TILE;
            bs[deep * (TILE + 4) + col] = col0 + col < n && k0 + deep < k ? b(k0 + deep, col0 + col) : (T)0;
        }
        __syncthreads();
        UNROLLED
        for (int q = 0; q < DEPTH; q++) {
            T al[4], bl[4];
            for (int i = 0; i < 4; i++) al[i] = as[q * (TILE + 4) + ty * 4 + i], bl[i] = bs[q * (TILE + 4) + tx * 4 + i];
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += al[i] * bl[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            i64 row = row0 + ty * 4 + i, col = col0 + tx * 4 + j;
            if (row < m && col < n) out(row, col, sum[i][j]);
        }
}

// How a block computes its tile.
template <class T> struct Threads {
    template <class A, class B, class Out>
    SPECIAL void operator()(i64 row0, i64 col0, i64 m, i64 n, i64 k, A a, B b, Out out) const {
        tile<T>(row0, col0, m, n, k, a, b, out);
    }
};
template <int R> struct Cores {
    bool deep_b;
    template <class A, class B, class Out>
    SPECIAL void operator()(i64 row0, i64 col0, i64 m, i64 n, i64 k, A a, B b, Out out) const {
        core_tile<R>(row0, col0, m, n, k, deep_b, a, b, out);
    }
};

struct Product {
    void* c;
    const void* a;
    const void* b;
    i64 m, n, k;
    // Steps of [batch outer][batch inner][row or depth][depth or column]; `inner` batches lie inside.
    i64 inner, a_steps[4], b_steps[4], c_steps[4];
    double alpha;
    Epilogue epilogue;
    Parts parts;
    int dtype, unused;    // of integers
};
template <class T, int D, class Tile> DEVICE void product(const Product& p, Tile tile) {
    int outer = blockIdx.z / (u32)p.inner, inner = blockIdx.z % (u32)p.inner;
    auto base = [&](const i64* steps) -> i64 { return outer * steps[0] + inner * steps[1]; };
    i64 a0 = base(p.a_steps), b0 = base(p.b_steps), c0 = base(p.c_steps);
    tile((i64)blockIdx.y * TILE, (i64)blockIdx.x * TILE, p.m, p.n, p.k,
         [&](i64 row, i64 i) { return load<T>(p.a, D, a0 + row * p.a_steps[2] + i * p.a_steps[3]); },
         [&](i64 i, i64 col) { return load<T>(p.b, D, b0 + i * p.b_steps[2] + col * p.b_steps[3]); },
         [&](i64 row, i64 col, T v) {
             i64 at = c0 + row * p.c_steps[2] + col * p.c_steps[3];
             store<T>(p.c, D, at, finish<T, D, sizeof(T) == 4>(p.epilogue, (T)(v * (T)p.alpha), row, col, at));
         });
}
KERNEL void __launch_bounds__(256, 2) product_f32(Product p) { product<float, F32>(p, Threads<float>{}); }
ENTRY_WITH_BARRIERS(product_f32)
KERNEL void __launch_bounds__(256) product_f64(Product p) { product<double, F64>(p, Threads<double>{}); }
ENTRY_WITH_BARRIERS(product_f64)
KERNEL void __launch_bounds__(256, 2) product_f16(Product p) {
    product<float, F16>(p, Cores<HALF>{p.b_steps[2] == 1});
}
ENTRY_WITH_BARRIERS(product_f16)
// Integers, in double precision as on the CPU.
DEVICE double load_integer(const void* at, int dtype, i64 i) {
    switch (dtype) {
        case I32: return ((const int*)at)[i];
        case I64: return (double)((const i64*)at)[i];
        case I8: return ((const signed char*)at)[i];
        case BOOL: return ((const unsigned char*)at)[i] != 0;
        default: return ((const unsigned char*)at)[i];
    }
}
KERNEL void __launch_bounds__(256) product_whole(Product p) {
    int outer = blockIdx.z / (u32)p.inner, inner = blockIdx.z % (u32)p.inner;
    auto base = [&](const i64* steps) -> i64 { return outer * steps[0] + inner * steps[1]; };
    i64 a0 = base(p.a_steps), b0 = base(p.b_steps), c0 = base(p.c_steps);
    tile<double>(
        (i64)blockIdx.y * TILE, (i64)blockIdx.x * TILE, p.m, p.n, p.k,
        [&](i64 row, i64 i) { return load_integer(p.a, p.dtype, a0 + row * p.a_steps[2] + i * p.a_steps[3]); },
        [&](i64 i, i64 col) { return load_integer(p.b, p.dtype, b0 + i * p.b_steps[2] + col * p.b_steps[3]); },
        [&](i64 row, i64 col, double v) {
            store_converted(p.c, p.dtype, c0 + row * p.c_steps[2] + col * p.c_steps[3], v * p.alpha);
        });
}
ENTRY_WITH_BARRIERS(product_whole)
// Numbers of single precision, rounded to bfloat16 where that is faster.
KERNEL void __launch_bounds__(256, 2) product_bf16(Product p) {
#if BRAIN_PRODUCTS
    product<float, F32>(p, Cores<BRAIN>{p.b_steps[2] == 1});
#else
    product<float, F32>(p, Threads<float>{});
#endif
}
ENTRY_WITH_BARRIERS(product_bf16)

// Channels first, up to three spatial axes. Rows are the filters of a group, columns the pixels of
// all images. Of a transposed one each pixel adds up what the elements spread to it.
struct Convolution {
    void* to;
    const void* from;
    const void* weight;
    i64 images, channels, filters;    // channels and filters of a group
    int groups, unused;
    int size[3], out[3], kernel[3], step[3], pad[3], dilate[3];
    Epilogue epilogue;
    Parts parts;
};
// Which pixel of an image the tap of a kernel reads for a pixel of the result. False: none.
template <bool TRANSPOSED> DEVICE bool pixel_read(const Convolution& p, int pixel, int tap, i64& read) {
    i64 at[3];
    for (int a = 2; a >= 0; a--) {
        int moved = tap % p.kernel[a] * p.dilate[a];
        if (TRANSPOSED) {
            at[a] = pixel % p.out[a] + p.pad[a] - moved;
            if (at[a] % p.step[a]) return false;
            at[a] /= p.step[a];
        } else {
            at[a] = pixel % p.out[a] * p.step[a] - p.pad[a] + moved;
        }
        if (at[a] < 0 || at[a] >= p.size[a]) return false;
        pixel /= p.out[a];
        tap /= p.kernel[a];
    }
    read = (at[0] * p.size[1] + at[1]) * p.size[2] + at[2];
    return true;
}
template <class T, int D, bool TRANSPOSED, class Tile> DEVICE void convolution(const Convolution& p, Tile tile) {
    // Depth and pixels of all images are numbered in 32 bits.
    int taps = p.kernel[0] * p.kernel[1] * p.kernel[2], pixels = p.out[0] * p.out[1] * p.out[2];
    i64 group = blockIdx.z, k = p.channels * taps;
    tile((i64)blockIdx.y * TILE, (i64)blockIdx.x * TILE, p.filters, p.images * pixels, k,
         [&](i64 row, i64 i) {
             i64 channel = TRANSPOSED ? (int)i / taps : 0, tap = TRANSPOSED ? (int)i % taps : 0;
             i64 at = TRANSPOSED ? ((group * p.channels + channel) * p.filters + row) * taps + tap
                                 : (group * p.filters + row) * k + i;
             return load<T>(p.weight, D, at);
         },
         [&](i64 i, i64 col) -> T {
             i64 image = (int)col / pixels, channel = (int)i / taps, read;
             if (!pixel_read<TRANSPOSED>(p, (int)col % pixels, (int)i % taps, read)) return 0;
             i64 plane = (image * p.groups + group) * p.channels + channel;
             return load<T>(p.from, D, plane * p.size[0] * p.size[1] * p.size[2] + read);
         },
         [&](i64 row, i64 col, T v) {
             i64 filter = group * p.filters + row;
             i64 image = (int)col / pixels, at = (image * p.groups * p.filters + filter) * pixels + (int)col % pixels;
             store<T>(p.to, D, at, finish<T, D>(p.epilogue, v, filter, filter, at));
         });
}
KERNEL void __launch_bounds__(256, 2) convolution_f32(Convolution p) {
    convolution<float, F32, false>(p, Threads<float>{});
}
ENTRY_WITH_BARRIERS(convolution_f32)
KERNEL void __launch_bounds__(256, 2) convolution_f64(Convolution p) {
    convolution<double, F64, false>(p, Threads<double>{});
}
ENTRY_WITH_BARRIERS(convolution_f64)
KERNEL void __launch_bounds__(256, 2) deconvolution_f32(Convolution p) {
    convolution<float, F32, true>(p, Threads<float>{});
}
ENTRY_WITH_BARRIERS(deconvolution_f32)
KERNEL void __launch_bounds__(256, 2) deconvolution_f64(Convolution p) {
    convolution<double, F64, true>(p, Threads<double>{});
}
ENTRY_WITH_BARRIERS(deconvolution_f64)
KERNEL void __launch_bounds__(256, 2) deconvolution_f16(Convolution p) {
    convolution<float, F16, true>(p, Cores<HALF>{false});
}
ENTRY_WITH_BARRIERS(deconvolution_f16)
KERNEL void __launch_bounds__(256, 2) convolution_f16(Convolution p) {
    convolution<float, F16, false>(p, Cores<HALF>{false});
}
ENTRY_WITH_BARRIERS(convolution_f16)
KERNEL void __launch_bounds__(256, 2) convolution_bf16(Convolution p) {
#if BRAIN_PRODUCTS
    convolution<float, F32, false>(p, Cores<BRAIN>{false});
#else
    convolution<float, F32, false>(p, Threads<float>{});
#endif
}
ENTRY_WITH_BARRIERS(convolution_bf16)

// Channels last: rows are the pixels of all images, columns the filters of a group. Weights are
// [tap][channel of a group][filter], so neighbouring threads read neighbouring numbers of both.
template <class T, int D, class Tile> DEVICE void convolution_last(const Convolution& p, Tile tile) {
    int taps = p.kernel[0] * p.kernel[1] * p.kernel[2], pixels = p.out[0] * p.out[1] * p.out[2];
    i64 group = blockIdx.z, filters = p.groups * p.filters;
    tile((i64)blockIdx.x * TILE, (i64)blockIdx.y * TILE, p.images * pixels, p.filters, p.channels * taps,
         [&](i64 row, i64 i) -> T {
             i64 image = (int)row / pixels, channel = (int)i % (int)p.channels, read;
             if (!pixel_read<false>(p, (int)row % pixels, (int)i / (int)p.channels, read)) return 0;
             i64 pixel = image * p.size[0] * p.size[1] * p.size[2] + read;
             return load<T>(p.from, D, (pixel * p.groups + group) * p.channels + channel);
         },
         [&](i64 i, i64 col) { return load<T>(p.weight, D, i * filters + group * p.filters + col); },
         [&](i64 row, i64 col, T v) {
             i64 filter = group * p.filters + col, at = row * filters + filter;
             store<T>(p.to, D, at, finish<T, D>(p.epilogue, v, filter, filter, at));
         });
}
KERNEL void __launch_bounds__(256, 2) convolution_last_f32(Convolution p) {
    convolution_last<float, F32>(p, Threads<float>{});
}
ENTRY_WITH_BARRIERS(convolution_last_f32)
KERNEL void __launch_bounds__(256, 2) convolution_last_f64(Convolution p) {
    convolution_last<double, F64>(p, Threads<double>{});
}
ENTRY_WITH_BARRIERS(convolution_last_f64)
KERNEL void __launch_bounds__(256, 2) convolution_last_f16(Convolution p) {
    convolution_last<float, F16>(p, Cores<HALF>{false});
}
ENTRY_WITH_BARRIERS(convolution_last_f16)
KERNEL void __launch_bounds__(256, 2) convolution_last_bf16(Convolution p) {
#if BRAIN_PRODUCTS
    convolution_last<float, F32>(p, Cores<BRAIN>{false});
#else
    convolution_last<float, F32>(p, Threads<float>{});
#endif
}
ENTRY_WITH_BARRIERS(convolution_last_bf16)

// Channels last, each filter over one channel: a thread makes one number.
template <class T, int D> DEVICE void depthwise(const Convolution& p) {
    int pixels = p.out[1] * p.out[2], filters = p.groups;
    i64 n = p.images * pixels * filters;
    ROLLED
    for (i64 i = first(); i < n; i += stride()) {
        int filter = (u32)i % (u32)filters, pixel = (u32)i / (u32)filters, image = pixel / pixels;
        int y0 = pixel % pixels / p.out[2] * p.step[1] - p.pad[1], x0 = pixel % p.out[2] * p.step[2] - p.pad[2];
        T v = 0;
        ROLLED
        for (int down = 0; down < p.kernel[1]; down++) {
            int y = y0 + down * p.dilate[1];
            if ((u32)y >= (u32)p.size[1]) continue;
            i64 row = ((i64)image * p.size[1] + y) * p.size[2];
            ROLLED
            for (int right = 0; right < p.kernel[2]; right++) {
                int x = x0 + right * p.dilate[2];
                if ((u32)x >= (u32)p.size[2]) continue;
                v += load<T>(p.from, D, (row + x) * filters + filter) *
                     load<T>(p.weight, D, (i64)(down * p.kernel[2] + right) * filters + filter);
            }
        }
        store<T>(p.to, D, i, finish<T, D>(p.epilogue, v, filter, filter, i));
    }
}
KERNEL void __launch_bounds__(256, 2) depthwise_f32(Convolution p) { depthwise<float, F32>(p); }
ENTRY(depthwise_f32)
KERNEL void __launch_bounds__(256, 2) depthwise_f64(Convolution p) { depthwise<double, F64>(p); }
ENTRY(depthwise_f64)
KERNEL void __launch_bounds__(256, 2) depthwise_f16(Convolution p) { depthwise<float, F16>(p); }
ENTRY(depthwise_f16)
