// Runs a kernel that was compiled for the host: all blocks of a grid, one after the other.
#include "host.h"
#include <algorithm>
#include <mutex>
#include <random>
#ifndef __x86_64__
#include <ucontext.h>
#endif

// Of the launch that runs; there is one for all threads of the process.
dim3 blockIdx, blockDim, gridDim;

namespace host {
dim3 thread;
std::vector<unsigned char> shared;
std::vector<float> shown;
std::vector<u64> lanes;
std::vector<float> fragments;
std::vector<Copies> copies;
bool late;

static void enter();
#ifdef __x86_64__
// A switch of ucontext.h makes a call of the system; there are thousands of switches in a block.
struct Context { void* at = nullptr; };
extern "C" void host_switch(void** from, void* to);
asm(R"(
    .text
    .type host_switch, @function
host_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
static void prepare(Context& context, std::vector<char>& stack) {
    // Behind six registers the address to go to, where a call would have left the stack.
    void** top = (void**)(((uintptr_t)(stack.data() + stack.size()) & ~(uintptr_t)15) - 16);
    *top = (void*)enter;
    context.at = top - 6;
}
static void change(Context& from, Context& to) { host_switch(&from.at, to.at); }
#else
typedef ucontext_t Context;
static void prepare(Context& context, std::vector<char>& stack) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack.data();
    context.uc_stack.ss_size = stack.size();
    context.uc_link = nullptr;
    makecontext(&context, enter, 0);
}
static void change(Context& from, Context& to) { swapcontext(&from, &to); }
#endif

enum Wait { Running, Barrier, Warp, Until, Done };
struct Fiber {
    Context context;
    std::vector<char> stack;
    dim3 thread;
    Wait wait = Running;
    bool (*is)(const void*) = nullptr;    // what it waits for, of this
    const void* what = nullptr;
};
static Context scheduler;
static std::vector<Fiber> fibers;
static Fiber* now = nullptr;
static void (*body)(void**);
static void** args;

static void pause(Wait why) {
    Fiber* me = now;
    me->wait = why;
    change(me->context, scheduler);
    thread = me->thread;
}
void wait_block() { pause(Barrier); }
void wait_warp() { pause(Warp); }
void wait_until(bool (*is)(const void*), const void* what) {
    now->is = is, now->what = what;
    pause(Until);
}
int number() { return (int)(now - fibers.data()); }

static void enter() {
    body(args);
    now->wait = Done;
    change(now->context, scheduler);
}

// Lets every fiber of a set go on that waits for the same; false: they wait for different things.
static bool release(size_t from, size_t to, Wait what) {
    size_t waiting = 0, live = 0;
    for (size_t i = from; i < to; i++) {
        live += fibers[i].wait != Done;
        waiting += fibers[i].wait == what;
    }
    if (!waiting || waiting != live) return false;
    for (size_t i = from; i < to; i++)
        if (fibers[i].wait == what) fibers[i].wait = Running;
    return true;
}

static void fill_with_nans(size_t bytes) {
    shared.assign(bytes, 0xff);
    shown.assign((bytes + 1) / 2, NAN);
}

static const char* run_block(size_t n, unsigned seed, std::mt19937& random) {
    for (size_t i = 0; i < n; i++) {
        Fiber& f = fibers[i];
        f.thread.x = i % blockDim.x, f.thread.y = i / blockDim.x % blockDim.y, f.thread.z = i / blockDim.x / blockDim.y;
        f.wait = Running;
        prepare(f.context, f.stack);
    }
    std::vector<size_t> ready, warps;
    for (size_t w = 0; w < n; w += 32) warps.push_back(w);
    if (seed % 3 == 1) std::reverse(warps.begin(), warps.end());
    if (seed % 3 == 2) std::shuffle(warps.begin(), warps.end(), random);
    for (;;) {
        // From seed 2 on a warp goes on as far as it can before the next one does anything; before
        // that they take turns. With seed 5 only some lanes of a warp go on in its turn.
        bool any = false;
        for (size_t w : warps) {
            do {
                size_t end = std::min(w + 32, n);
                release(w, end, Warp);
                ready.clear();
                for (size_t i = w; i < end; i++) {
                    Fiber& f = fibers[i];
                    if (f.wait == Running || (f.wait == Until && f.is(f.what))) ready.push_back(i);
                }
                if (seed > 1) std::shuffle(ready.begin(), ready.end(), random);
                if (seed == 5 && !ready.empty()) ready.resize(1 + random() % ready.size());
                for (size_t i : ready) {
                    now = &fibers[i];
                    thread = now->thread;
                    change(scheduler, now->context);
                }
                any |= !ready.empty();
            } while (seed > 1 && seed < 5 && !ready.empty());
        }
        if (any || release(0, n, Barrier)) continue;
        if (std::all_of(fibers.begin(), fibers.begin() + n, [](const Fiber& f) { return f.wait == Done; })) return nullptr;
        return "threads wait for each other: a barrier or an exchange that not all of them reach";
    }
}
}  // namespace host

// Returns nullptr, or what is wrong with the kernel.
extern "C" const char* host_launch(void (*body)(void**), int barriers, const unsigned grid[3], const unsigned threads[3],
                                   size_t dynamic, void** args, unsigned seed) {
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    std::mt19937 random(seed);
    size_t n = (size_t)threads[0] * threads[1] * threads[2], blocks = (size_t)grid[0] * grid[1] * grid[2];
    gridDim.x = grid[0], gridDim.y = grid[1], gridDim.z = grid[2];
    blockDim.x = threads[0], blockDim.y = threads[1], blockDim.z = threads[2];
    host::body = body;
    host::args = args;
    if (barriers) {
        host::lanes.assign((n + 31) / 32 * 32, 0);
        host::fragments.assign(host::lanes.size() * 12, 0);
        host::late = seed % 2 == 0;
        // Fibers must not move while they run.
        if (host::fibers.size() < n) host::fibers.resize(n);
        for (auto& f : host::fibers) f.stack.resize(64 << 10);
    }
    for (size_t block = 0; block < blocks; block++) {
        blockIdx.x = block % grid[0], blockIdx.y = block / grid[0] % grid[1], blockIdx.z = block / grid[0] / grid[1];
        if (barriers) {
            host::fill_with_nans(dynamic);
            host::copies.assign(n, {});
            if (const char* wrong = host::run_block(n, seed, random)) return wrong;
            continue;
        }
        for (size_t t = 0; t < n; t++) {
            size_t i = seed % 2 ? n - 1 - t : t;
            host::thread.x = i % threads[0], host::thread.y = i / threads[0] % threads[1];
            host::thread.z = i / threads[0] / threads[1];
            body(args);
        }
    }
    return nullptr;
}
