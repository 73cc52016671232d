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

/* Ends an asynchronous function of the engine: on_complete is what the function was given. error
 * null: the function did its work; otherwise the text becomes the failure of the arrays that it
 * writes. From any thread, once. */
MXNET_DLL int MXRTEngineComplete(void *on_complete, const char *error);

#ifdef __cplusplus
}
#endif

#endif /* MXRT_H_ */
