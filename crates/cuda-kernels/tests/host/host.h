// The names of device.h for a compiler of the host. A block's threads are fibers of one thread of
// the system: each runs until it meets a barrier or a shuffle, in an order that a seed decides. So
// a missing barrier gives other results for other seeds. Asynchronous copies are made at once, or when
// a thread waits for them. Shared memory holds NaNs when a block
// begins. A barrier that some threads do not reach is an error. Kernels without barriers run as
// plain loops.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

typedef uint32_t u32;
typedef unsigned long long u64;
typedef long long i64;
struct dim3 { unsigned x = 1, y = 1, z = 1; };
struct float4 { float x, y, z, w; };
struct Piece { u64 low, high; };

namespace host {
extern dim3 thread;
extern std::vector<unsigned char> shared;
extern std::vector<u64> lanes;    // what lanes show each other
extern std::vector<float> fragments;    // of products on tensor cores: 12 numbers of each lane
struct Copy { void* to; const void* from; int group; };
struct Product { float* sums; const unsigned short *a, *b; int columns, apart; };
// Copies, products of a warpgroup, and what the thread wrote that products do not see yet.
struct Copies {
    std::vector<Copy> waiting;
    int group = 0;
    std::vector<Product> products;
    std::vector<void*> hidden;
};
extern std::vector<Copies> copies;    // of each thread: those that nothing has waited for
extern bool late;    // whether copies and products are made when a thread waits for them, and not at once
extern std::vector<float> shown;    // the halves of shared memory as products of a warpgroup see them
void wait_block();
void wait_warp();
void wait_until(bool (*is)(const void*), const void* what);
int number();    // of the running thread in its block
}  // namespace host

extern dim3 blockIdx, blockDim, gridDim;
#define threadIdx (host::thread)
#define DEVICE static inline
// Products take most of the time of all kernels: the compiler may do its best.
#if defined(__GNUC__) && !defined(__clang__)
#define FAST __attribute__((optimize("O3")))
#else
#define FAST
#endif
#define SPECIAL inline
#define ROLLED
#define UNROLLED
#define UNROLLED_BY_2
// Each file is included alone, or is a whole text. What it includes has kernels too, which their
// own files define.
#define JOINED(a, b) a##b
#define AT_LEVEL(name, level) JOINED(name, level)
#define KERNEL AT_LEVEL(KERNEL_, __INCLUDE_LEVEL__)
#define KERNEL_0 extern "C"
#define KERNEL_1 extern "C"
#define KERNEL_2 static
#define KERNEL_3 static
#define KERNEL_4 static
#define DYNAMIC_SHARED(type, name) type* name = (type*)host::shared.data()
#define __launch_bounds__(...)
#define __restrict__ __restrict
DEVICE void __syncthreads() { host::wait_block(); }

DEVICE float load_half(unsigned short h) {
    u32 sign = (h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 1023, u;
    float f;
    if (e == 0) {
        f = (float)m * 0x1p-24f;
        return sign ? -f : f;
    }
    u = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13;
    memcpy(&f, &u, 4);
    return f;
}
DEVICE unsigned short to_half(float f) {
    u32 u;
    memcpy(&u, &f, 4);
    u32 sign = u >> 16 & 0x8000u;
    float a = std::fabs(f);
    if (f != f) return 0x7fff;
    if (a >= 65520.0f) return sign | 0x7c00;
    if (a < 6.103515625e-5f) return sign | (unsigned short)std::nearbyint(a * 0x1p24f);
    u &= 0x7fffffffu;
    u += 0xfff + (u >> 13 & 1);
    return sign | ((u >> 13) - (112u << 10));
}
DEVICE float load_brain(unsigned short b) {
    u32 u = (u32)b << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}
DEVICE unsigned short to_brain(float f) {
    u32 u;
    memcpy(&u, &f, 4);
    return f != f ? 0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
namespace host {
// What the thread of the block with this number has for `v`.
template <class T> T of_thread(T v, int other) {
    u64 bits = 0;
    memcpy(&bits, &v, sizeof v);
    lanes[number()] = bits;
    wait_warp();
    bits = lanes[other];
    wait_warp();
    memcpy(&v, &bits, sizeof v);
    return v;
}
}  // namespace host
template <class T> T shuffle_xor(T v, int mask) { return host::of_thread(v, host::number() ^ mask); }
DEVICE u32 shuffle(u32 v, int lane) { return host::of_thread(v, (host::number() & ~31) + lane); }
// Four matrices of rows that the lanes name.
#define MATRIX_LOADS 1
namespace host {
template <class Take> void load_four(u32 to[4], const unsigned short* row, Take take) {
    int me = number();
    lanes[me] = (u64)row;
    wait_warp();
    for (int i = 0; i < 4; i++)
        to[i] = take([&](int of) { return (const unsigned short*)lanes[(me & ~31) + i * 8 + of]; }, me & 31);
    wait_warp();
}
}  // namespace host
DEVICE void load_matrices(u32 to[4], const unsigned short* row) {
    host::load_four(to, row, [](auto rows, int lane) {
        const unsigned short* two = rows(lane / 4) + lane % 4 * 2;
        return two[0] | (u32)two[1] << 16;
    });
}
DEVICE void load_turned(u32 to[4], const unsigned short* row) {
    host::load_four(to, row, [](auto rows, int lane) {
        int k = lane % 4 * 2;
        return rows(k)[lane / 4] | (u32)rows(k + 1)[lane / 4] << 16;
    });
}
namespace host {
DEVICE void make(const Copy& copy) {
    Piece zeros = {0, 0};
    memcpy(copy.to, copy.from ? copy.from : &zeros, sizeof zeros);
    copies[number()].hidden.push_back(copy.to);
}
}  // namespace host
DEVICE void copy_async(void* to, const void* from) {
    auto& mine = host::copies[host::number()];
    if (host::late)
        mine.waiting.push_back({to, from, mine.group});
    else
        host::make({to, from, 0});
}
DEVICE Piece load_piece(const void* at) { return *(const Piece*)at; }
DEVICE void copy_commit() { host::copies[host::number()].group++; }
template <int N> DEVICE void copy_wait() {
    auto& mine = host::copies[host::number()];
    std::vector<host::Copy> left;
    for (auto& copy : mine.waiting)
        if (copy.group < mine.group - N) host::make(copy); else left.push_back(copy);
    mine.waiting = left;
}
// Products of a warpgroup. What they read is what threads showed them after they wrote it.
#define WARPGROUPS 1
DEVICE void __syncwarp() { host::wait_warp(); }
struct Matrix { const unsigned short* at; int apart; };
DEVICE Matrix deep_matrix(const unsigned short* at) { return {at, 0}; }
DEVICE Matrix wide_matrix(const unsigned short* at, int apart) { return {at, apart}; }
namespace host {
DEVICE size_t place(const unsigned short* at) { return (const unsigned char*)at - shared.data(); }
// The eight numbers of a piece in shared memory, where rows of 128 bytes have their pieces swapped.
DEVICE const float* piece_shown(size_t byte) {
    byte ^= (byte >> 7 & 7) << 4;
    return &shown.at(byte / 2 + 7) - 7;
}
DEVICE FAST void make(const Product& p) {
    int lane = number() % 32, row0 = number() / 32 % 4 * 16 + lane / 4, col0 = lane % 4 * 2;
    size_t a = place(p.a), b = place(p.b);
    float rows[2][16];
    for (int r = 0; r < 2; r++)
        for (int half = 0; half < 2; half++) {
            int row = row0 + r * 8;
            memcpy(&rows[r][half * 8], piece_shown(a + row / 8 * 1024 + row % 8 * 128 + half * 16), 8 * sizeof(float));
        }
    // Groups of eight columns, of which each thread has two.
    for (int group = 0; group < p.columns / 8; group++) {
        float* sums = p.sums + group * 4;
        if (p.apart) {
            size_t at = b + group / 8 * p.apart + group % 8 * 16;
            for (int k = 0; k < 16; k++) {
                const float* two = piece_shown(at + k * 128) + col0;
                for (int i = 0; i < 4; i++) sums[i] += rows[i / 2][k] * two[i % 2];
            }
            continue;
        }
        for (int half = 0; half < 2; half++) {
            const float *x = rows[0] + half * 8, *y = rows[1] + half * 8;
            const float* one = piece_shown(b + group * 1024 + col0 * 128 + half * 16);
            const float* other = piece_shown(b + group * 1024 + (col0 + 1) * 128 + half * 16);
            for (int k = 0; k < 8; k++) {
                sums[0] += x[k] * one[k], sums[1] += x[k] * other[k];
                sums[2] += y[k] * one[k], sums[3] += y[k] * other[k];
            }
        }
    }
}
}  // namespace host
template <int COLS, int TURNED> void warpgroup_mma(float (&d)[COLS / 8][4], Matrix a, Matrix b) {
    host::Product product = {d[0], a.at, b.at, COLS, TURNED ? b.apart : 0};
    if (host::late)
        host::copies[host::number()].products.push_back(product);
    else
        host::make(product);
}
template <int N> void warpgroup_fence(float (&)[N][4]) {}
DEVICE void warpgroup_commit() {}
DEVICE void warpgroup_wait() {
    auto& mine = host::copies[host::number()].products;
    for (auto& product : mine) host::make(product);
    mine.clear();
}
DEVICE void show_products() {
    auto& hidden = host::copies[host::number()].hidden;
    for (void* at : hidden) {
        const unsigned short* piece = (const unsigned short*)at;
        float* to = &host::shown.at(host::place(piece) / 2 + 7) - 7;
        for (int i = 0; i < 8; i++) to[i] = load_half(piece[i]);
    }
    hidden.clear();
}
template <int N> void fewer_registers() {}
template <int N> void more_registers() {}
DEVICE unsigned short* swizzled_memory(unsigned char* at) { return (unsigned short*)at; }
// Arrivals that a phase still needs, those that each phase needs, and the number of the phase.
struct Phases { unsigned left : 16, count : 16, phase : 32; };
static_assert(sizeof(Phases) == sizeof(u64), "a barrier takes 8 bytes");
DEVICE void barrier_init(u64* at, u32 count) { *(Phases*)at = {count, count, 0}; }
DEVICE void barrier_arrive(u64* at) {
    auto& phases = *(Phases*)at;
    if (--phases.left == 0) phases.left = phases.count, phases.phase++;
}
DEVICE void barrier_wait(u64* at, u32 parity) {
    auto is = parity ? [](const void* at) { return ((const Phases*)at)->phase % 2 == 0; }
                     : [](const void* at) { return ((const Phases*)at)->phase % 2 == 1; };
    host::wait_until(is, at);
}
// Products on tensor cores, from the fragments of all lanes of a warp.
#define BRAIN_PRODUCTS 1
#define HALF_PRODUCTS 1
namespace host {
template <float (*LOAD)(unsigned short)> FAST void mma(float d[4], const u32 a[4], const u32 b[2]) {
    int me = host::number(), group = (me & 31) >> 2, pair = me & 3;
    // The factors of a warp: 16 rows of 16 numbers, then 8 columns of as many.
    float* rows = &host::fragments[(me & ~31) * 12];
    float* cols = rows + 256;
    for (int part = 0; part < 4; part++)
        for (int i = 0; i < 2; i++)
            rows[(group + part % 2 * 8) * 16 + part / 2 * 8 + pair * 2 + i] = LOAD((unsigned short)(a[part] >> 16 * i));
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < 2; i++) cols[group * 16 + part * 8 + pair * 2 + i] = LOAD((unsigned short)(b[part] >> 16 * i));
    host::wait_warp();
    const float *x = rows + group * 16, *y = x + 8 * 16, *one = cols + pair * 2 * 16, *other = one + 16;
    for (int k = 0; k < 16; k++) {
        d[0] += x[k] * one[k], d[1] += x[k] * other[k];
        d[2] += y[k] * one[k], d[3] += y[k] * other[k];
    }
    host::wait_warp();
}
}  // namespace host
#if HALF_PRODUCTS
DEVICE void mma_half(float d[4], const u32 a[4], const u32 b[2]) { host::mma<load_half>(d, a, b); }
#endif
DEVICE void mma_brain(float d[4], const u32 a[4], const u32 b[2]) { host::mma<load_brain>(d, a, b); }
DEVICE float times_rounded(float a, float b) { return a * b; }
DEVICE double times_rounded(double a, double b) { return a * b; }
DEVICE float plus_rounded(float a, float b) { return a + b; }
DEVICE double plus_rounded(double a, double b) { return a + b; }
DEVICE u32 bits_of(float v) {
    u32 u;
    memcpy(&u, &v, 4);
    return u;
}
DEVICE u64 bits_of(double v) {
    u64 u;
    memcpy(&u, &v, 8);
    return u;
}
DEVICE float single_of(u32 bits) {
    float v;
    memcpy(&v, &bits, 4);
    return v;
}
DEVICE float infinity() { return __builtin_inff(); }
DEVICE void keep_largest(int* at, int v) {
    int held = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (held < v && !__atomic_compare_exchange_n(at, &held, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {}
}
DEVICE void count_one(i64* at) { __atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST); }
DEVICE void report(u64* status, u64 value) {
    u64 none = 0;
    __atomic_compare_exchange_n(status, &none, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
DEVICE void report_least(u64* status, u64 value) {
    u64 heard = 0;
    while (!__atomic_compare_exchange_n(status, &heard, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        if (heard <= value) return;
}

// Each kernel gets an entry `host_NAME`, which takes arguments as cuLaunchKernel does, one that
// tells how large they are, and one that tells whether it needs fibers.
namespace host {
template <class... A, size_t... I> void call(void (*f)(A...), void** args, std::index_sequence<I...>) {
    f(*(std::remove_reference_t<A>*)args[I]...);
}
template <class... A> void call(void (*f)(A...), void** args) { call(f, args, std::index_sequence_for<A...>{}); }
template <class... A> int sizes(void (*)(A...), size_t* out) {
    size_t all[] = {sizeof(A)...};
    memcpy(out, all, sizeof all);
    return sizeof...(A);
}
}  // namespace host
#define HOST_ENTRY(name, barriers) AT_LEVEL(HOST_ENTRY_, __INCLUDE_LEVEL__)(name, barriers)
#define HOST_ENTRY_0 HOST_ENTRY_1
#define HOST_ENTRY_1(name, barriers)                                                               \
    extern "C" void host_##name(void** args) { host::call(name, args); }                           \
    extern "C" int host_sizes_##name(size_t* out) { return host::sizes(name, out); }               \
    extern "C" int host_barriers_##name() { return barriers; }
#define HOST_ENTRY_2(name, barriers)
#define HOST_ENTRY_3(name, barriers)
#define HOST_ENTRY_4(name, barriers)
#define ENTRY(name) HOST_ENTRY(name, 0)
#define ENTRY_WITH_BARRIERS(name) HOST_ENTRY(name, 1)
