/* The C interface of mxrt: the part of MXNet 1.9.1's c_api.h that inference needs.
 *
 * Every function returns 0, or -1 with a message in MXGetLastError(). Every function may be called
 * from any thread, and any number of threads may use the same objects at the same time.
 *
 * What callers promise: pointers are null (which is an error unless said otherwise) or point to
 * what the function reads or writes, texts end in a zero byte and are UTF-8, and arrays have as
 * many elements as the number beside them says. Nothing else: handles are looked up, so one that is
 * wrong or was freed is an error and not a crash.
 *
 * Arrays of handles, names and extents that functions return belong to the calling thread and stay
 * unchanged until it calls a function that returns the same sort of thing. The objects that handles
 * stand for belong to the caller.
 *
 * Results of a call are computed in the background. A failure stays with the arrays that depend on
 * it and is returned by whatever waits for them: MXNDArrayWaitToRead, MXNDArraySyncCopyToCPU,
 * MXNDArraySave, MXNDArrayWaitAll.
 *
 * Settings are read from the environment when the first array, or callable graph, is made:
 * MXNET_ENGINE_TYPE, MXRT_CORES, OMP_NUM_THREADS, MXNET_CPU_WORKER_NTHREADS, MXRT_MEMORY_LIMIT_MB,
 * MXRT_CONV_WINOGRAD.
 */
#ifndef MXRT_H_
#define MXRT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define MXRT_DEFAULT(x) = x
extern "C" {
#else
#define MXRT_DEFAULT(x)
#endif

typedef void *NDArrayHandle;
typedef void *SymbolHandle;
typedef void *CachedOpHandle;

/* The message of this thread's last error: a kind (ValueError, MXNetError, ...), a colon, and text.
 * Valid until the thread's next error. */
const char *MXGetLastError(void);
/* The version of MXNet whose interface this is: 10901. */
int MXGetVersion(int *out);
/* The version of mxrt itself. */
const char *MXRTGetVersion(void);

/* ---- arrays ---- */

/* dev_type: 1 cpu, 3 cpu_pinned, 5 cpu_shared. dtype: 0 float32, 1 float64, 2 float16, 3 uint8,
 * 4 int32, 5 int8, 6 int64, 7 bool, 8 int16, 9 uint16, 10 uint32, 11 uint64, 12 bfloat16. New
 * arrays hold zeros. */
int MXNDArrayCreate(const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id, int delay_alloc,
                    NDArrayHandle *out);
int MXNDArrayCreateEx(const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id, int delay_alloc, int dtype,
                      NDArrayHandle *out);
int MXNDArrayFree(NDArrayHandle handle);

int MXNDArrayGetShape(NDArrayHandle handle, uint32_t *out_dim, const uint32_t **out_pdata);
int MXNDArrayGetShapeEx(NDArrayHandle handle, int *out_dim, const int **out_pdata);
int MXNDArrayGetDType(NDArrayHandle handle, int *out_dtype);
int MXNDArrayGetStorageType(NDArrayHandle handle, int *out_storage_type);
int MXNDArrayGetContext(NDArrayHandle handle, int *out_dev_type, int *out_dev_id);

/* size counts elements and must be that of the array. */
int MXNDArraySyncCopyFromCPU(NDArrayHandle handle, const void *data, size_t size);
int MXNDArraySyncCopyToCPU(NDArrayHandle handle, void *data, size_t size);

int MXNDArrayWaitToRead(NDArrayHandle handle);
int MXNDArrayWaitToWrite(NDArrayHandle handle);
int MXNDArrayWaitAll(void);

/* ---- parameter files ---- */

/* *out_name_size is 0 for files without names. */
int MXNDArrayLoad(const char *fname, uint32_t *out_size, NDArrayHandle **out_arr, uint32_t *out_name_size,
                  const char ***out_names);
int MXNDArrayLoadFromBuffer(const void *ndarray_buffer, size_t size, uint32_t *out_size, NDArrayHandle **out_arr,
                            uint32_t *out_name_size, const char ***out_names);
/* keys may be null: then the arrays have no names. */
int MXNDArraySave(const char *fname, uint32_t num_args, NDArrayHandle *args, const char **keys);

/* ---- symbols ---- */

int MXSymbolCreateFromFile(const char *fname, SymbolHandle *out);
int MXSymbolCreateFromJSON(const char *json, SymbolHandle *out);
int MXSymbolSaveToJSON(SymbolHandle symbol, const char **out_json);
int MXSymbolListArguments(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array);
int MXSymbolListAuxiliaryStates(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array);
int MXSymbolListOutputs(SymbolHandle symbol, uint32_t *out_size, const char ***out_str_array);
/* All inputs in the order in which a CachedOp takes them (option 0), or only arguments (1) or
 * auxiliary states (2). */
int NNSymbolListInputNames(SymbolHandle symbol, int option, uint32_t *out_size, const char ***out_str_array);
int MXSymbolFree(SymbolHandle symbol);

/* ---- callable graphs ---- */

int MXCreateCachedOp(SymbolHandle handle, CachedOpHandle *out);
/* Flags are MXNet's: static_alloc, static_shape, data_indices, param_indices, ... */
int MXCreateCachedOpEx(SymbolHandle handle, int num_flags, const char **keys, const char **vals, CachedOpHandle *out);
/* thread_safe is accepted and changes nothing: every CachedOp may be called from any number of
 * threads. */
int MXCreateCachedOpEX(SymbolHandle handle, int num_flags, const char **keys, const char **vals, CachedOpHandle *out,
                       bool thread_safe MXRT_DEFAULT(false));
int MXFreeCachedOp(CachedOpHandle handle);

/* If *outputs is null, arrays are made for the results and *num_outputs is set. Otherwise *outputs
 * are *num_outputs arrays that the results are written into. Shapes and numbers of inputs are
 * checked here. */
int MXInvokeCachedOp(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                     NDArrayHandle **outputs);
/* *out_stypes: the storage type of each result, 0 (dense). */
int MXInvokeCachedOpEx(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs, int *num_outputs,
                       NDArrayHandle **outputs, const int **out_stypes);

#ifdef __cplusplus
}
#endif

#endif /* MXRT_H_ */
