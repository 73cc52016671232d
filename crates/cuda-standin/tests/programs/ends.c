/* Ends while kernels run: the driver and the library of kernels are the arguments. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*function)(void *, ...);

static void *found(void *library, const char *name) {
    void *address = dlsym(library, name);
    if (!address) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(2);
    }
    return address;
}

static void works(int code, const char *name) {
    if (code) {
        fprintf(stderr, "%s: %d\n", name, code);
        exit(3);
    }
}

#define CALL(name, ...) works(((function)(size_t)found(driver, #name))(__VA_ARGS__), #name)

int main(int count, char **arguments) {
    void *driver = count == 3 ? dlopen(arguments[1], RTLD_NOW) : NULL, *kernels, *context, *module, *kernel;
    atomic_int *entered;
    if (!driver) return 4;
    setenv("STANDIN_KERNELS", arguments[2], 1);
    works(((int (*)(unsigned))(size_t)found(driver, "cuInit"))(0), "cuInit");
    CALL(cuDevicePrimaryCtxRetain, &context, 0);
    CALL(cuCtxSetCurrent, context);
    CALL(cuModuleLoadData, &module, "// any image");
    CALL(cuModuleGetFunction, &kernel, module, "slow");
    for (int launch = 0; launch < 1000; ++launch)
        CALL(cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    kernels = dlopen(arguments[2], RTLD_NOW);
    entered = found(kernels, "entered");
    while (!*entered) {}
    *(atomic_int *)found(kernels, "leaving") = 1;
    return 0;
}
