/* The C interface of mxrt: that of MXNet 1.9.1 as far as it is for inference, and what is ours.
 *
 * Settings are read from the environment when the first array, or callable graph, is made:
 * MXNET_ENGINE_TYPE, MXRT_CORES, OMP_NUM_THREADS, MXNET_CPU_WORKER_NTHREADS, MXRT_MEMORY_LIMIT_MB,
 * MXRT_CONV_WINOGRAD.
 */
#ifndef MXRT_H_
#define MXRT_H_

#include <mxnet/c_api.h>
#include <mxnet/c_predict_api.h>
#include <nnvm/c_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of mxrt itself. */
MXNET_DLL const char *MXRTGetVersion(void);

/* 1: denormal numbers count as zeros in operators on the CPU, as processors compute with them up to
 * 100 times slower. 0, the default: they do not. *prev is what was set before. */
MXNET_DLL int MXRTSetFlushDenormals(int flush, int *prev);

/* The kind of this thread's last error, and its message, without the name of a class in front and with
 * the code of the kind at the end, such as [MX-SHAPE]: `mxrt explain MX-SHAPE` prints its page. Kinds:
 * value, type, shape, index, not_implemented, training, memory, panic, not_completed, shutdown,
 * deadline, cancelled, data, file_not_found, device, and operator for all others. Both texts are empty
 * when there was no error, and valid until the thread's next error. */
MXNET_DLL int MXRTGetLastError(const char **out_kind, const char **out_message);

/* Ends an asynchronous function of the engine: on_complete is what the function was given. error
 * null: the function did its work; otherwise the text becomes the failure of the arrays that it
 * writes. From any thread, once. */
MXNET_DLL int MXRTEngineComplete(void *on_complete, const char *error);

/* ---- models with their parameters ---------------------------------------------------------------
 *
 * A model may be called from any number of threads at once. */
typedef void *ModelHandle;

/* How a call is made. All fields but size may be 0. A field that is added later changes the size, and
 * a library refuses a size that it does not know. */
typedef struct {
  size_t size;            /* sizeof(MXRTCallOptions) */
  double deadline;        /* seconds from now, or 0: a call that has not started by then fails */
  int32_t priority;       /* while calls wait for cores, higher ones start first */
  int32_t cancel_on_drop; /* not 0: a call does not run if all its results were freed before */
} MXRTCallOptions;

/* input_names: the inputs of a call, in order; all other inputs of the symbol are parameters, with a
 * value in the file. param_file may be null. dev_type: 1 cpu. Flags: those of MXCreateCachedOpEx. */
MXNET_DLL int MXRTModelLoad(const char *symbol_file, const char *param_file, uint32_t num_inputs,
                            const char **input_names, int dev_type, int dev_id, uint32_t num_flags,
                            const char **flag_keys, const char **flag_vals, ModelHandle *out);
/* The same for the content of the files. param_size may be 0. */
MXNET_DLL int MXRTModelCreate(const char *symbol_json_str, const void *param_bytes, size_t param_size,
                              uint32_t num_inputs, const char **input_names, int dev_type, int dev_id,
                              uint32_t num_flags, const char **flag_keys, const char **flag_vals, ModelHandle *out);
/* The names belong to the thread, until its next call of the same function. */
MXNET_DLL int MXRTModelListInputs(ModelHandle handle, uint32_t *out_size, const char ***out_str_array);
MXNET_DLL int MXRTModelListOutputs(ModelHandle handle, uint32_t *out_size, const char ***out_str_array);
/* Starts a call and returns. options may be null. If *outputs is null, new arrays are made: the array
 * of handles belongs to the thread, the NDArrays to the caller. Otherwise the results go into the
 * *num_outputs given arrays. Failures of the call are those of its results. */
MXNET_DLL int MXRTModelCall(ModelHandle handle, int num_inputs, NDArrayHandle *inputs, const MXRTCallOptions *options,
                            int *num_outputs, NDArrayHandle **outputs);
/* Running calls continue. */
MXNET_DLL int MXRTModelFree(ModelHandle handle);

/* ---- arrays -------------------------------------------------------------------------------------*/

/* An array with a copy of size bytes: its elements, row-major. dtype: 0 float32, 1 float64, ... */
MXNET_DLL int MXRTNDArrayFromData(const void *data, size_t size, const int64_t *shape, int ndim, int dev_type,
                                  int dev_id, int dtype, NDArrayHandle *out);
/* 1: the array has its value, or the failure that took its place. */
MXNET_DLL int MXRTNDArrayIsReady(NDArrayHandle handle, int *out);
/* Is given data, then null twice, or kind and message of the failure. May start work but not wait. A
 * C++ exception must not leave it. */
typedef void (*MXRTReadyCallback)(void *data, const char *kind, const char *message);
/* Calls callback once, when the array is ready: now, or in a thread of the library. */
MXNET_DLL int MXRTNDArrayOnReady(NDArrayHandle handle, MXRTReadyCallback callback, void *data);
/* What should compute the array and has not started does not run, unless another of its results is
 * wanted. The array then holds a failure of the kind cancelled. */
MXNET_DLL int MXRTNDArrayCancel(NDArrayHandle handle);
/* The pixels of a JPEG or PNG file: (height, width, channels), uint8. flag: 1 for three channels, 0
 * for one. to_rgb: red is the first channel, otherwise blue. */
MXNET_DLL int MXRTImageDecode(const void *data, size_t size, int flag, int to_rgb, NDArrayHandle *out);

#ifdef __cplusplus
}
#endif

#endif /* MXRT_H_ */
