/* The predict interface of MXNet 1.9.1, as mxrt has it: a model in a few calls.
 *
 * Every function returns 0, or -1 with a message in MXGetLastError(). Every function may be called
 * from any thread. Different predictors run from different threads at once. Threads may share one
 * predictor: each run takes the inputs as they are at its begin, and each output is of one run.
 *
 * Arguments: pointers are null (an error unless said otherwise) or point to what the function reads
 * or writes; texts end in a zero byte and are UTF-8; handles may be anything, since they are looked
 * up.
 */
#ifndef MXNET_C_PREDICT_API_H_
#define MXNET_C_PREDICT_API_H_

#include <mxnet/c_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Told the name and the array of a result. The function frees the array with MXNDArrayFree. It may
 * be called from any thread that runs the predictor. A C++ exception must not leave it. */
typedef void (*PredMonitorCallback)(const char *, NDArrayHandle, void *);

/* The message of this thread's last error. Never null; valid until the thread's next error. */
MXNET_DLL const char *MXGetLastError(void);

/* symbol_json_str: the text of a -symbol.json file. param_bytes: the content of a .params file, with
 * names arg:... and aux:.... dev_type: 1 cpu. Input i has the extents
 * input_shape_data[input_shape_indptr[i]] up to input_shape_data[input_shape_indptr[i + 1]].
 * Arguments that are neither inputs nor parameters are errors, unless they are labels of a loss. */
MXNET_DLL int MXPredCreate(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type,
                           int dev_id, uint32_t num_input_nodes, const char **input_keys,
                           const uint32_t *input_shape_indptr, const uint32_t *input_shape_data,
                           PredictorHandle *out);
/* With element types of arguments (0 float32, 1 float64, 2 float16, 3 uint8, 4 int32, 5 int8,
 * 6 int64, ...). Others are float32. Parameters keep their own. */
MXNET_DLL int MXPredCreateEx(const char *symbol_json_str, const void *param_bytes, int param_size, int dev_type,
                             int dev_id, const uint32_t num_input_nodes, const char **input_keys,
                             const uint32_t *input_shape_indptr, const uint32_t *input_shape_data,
                             const uint32_t num_provided_arg_dtypes, const char **provided_arg_dtype_names,
                             const int *provided_arg_dtypes, PredictorHandle *out);
/* The outputs are those of the nodes named in output_keys. */
MXNET_DLL int MXPredCreatePartialOut(const char *symbol_json_str, const void *param_bytes, int param_size,
                                     int dev_type, int dev_id, uint32_t num_input_nodes, const char **input_keys,
                                     const uint32_t *input_shape_indptr, const uint32_t *input_shape_data,
                                     uint32_t num_output_nodes, const char **output_keys, PredictorHandle *out);
/* num_threads predictors that share the parameters. Each has its own inputs and outputs. out has
 * num_threads places. */
MXNET_DLL int MXPredCreateMultiThread(const char *symbol_json_str, const void *param_bytes, int param_size,
                                      int dev_type, int dev_id, uint32_t num_input_nodes, const char **input_keys,
                                      const uint32_t *input_shape_indptr, const uint32_t *input_shape_data,
                                      int num_threads, PredictorHandle *out);
/* A second predictor for other shapes that shares the parameters. Both are freed. */
MXNET_DLL int MXPredReshape(uint32_t num_input_nodes, const char **input_keys, const uint32_t *input_shape_indptr,
                            const uint32_t *input_shape_data, PredictorHandle handle, PredictorHandle *out);
/* The extents belong to the thread, until its next call for a shape of this predictor. */
MXNET_DLL int MXPredGetOutputShape(PredictorHandle handle, uint32_t index, uint32_t **shape_data,
                                   uint32_t *shape_ndim);
MXNET_DLL int MXPredGetOutputType(PredictorHandle handle, uint32_t out_index, int *out_dtype);
/* size counts elements and must be that of the input. data holds elements of the input's type. */
MXNET_DLL int MXPredSetInput(PredictorHandle handle, const char *key, const float *data, uint32_t size);
/* Starts a run. All inputs must have been set. */
MXNET_DLL int MXPredForward(PredictorHandle handle);
/* Steps 0, 1, ... until *step_left is 0. The results are there after the last step. */
MXNET_DLL int MXPredPartialForward(PredictorHandle handle, int step, int *step_left);
/* Waits for an output of the last run and copies its elements, of the output's type. An error before
 * the first run. */
MXNET_DLL int MXPredGetOutput(PredictorHandle handle, uint32_t index, float *data, uint32_t size);
MXNET_DLL int MXPredFree(PredictorHandle handle);

/* The content of a file of arrays, float32. What MXNDListGet returns is valid until MXNDListFree. */
MXNET_DLL int MXNDListCreate(const char *nd_file_bytes, int nd_file_size, NDListHandle *out, uint32_t *out_length);
MXNET_DLL int MXNDListGet(NDListHandle handle, uint32_t index, const char **out_key, const float **out_data,
                          const uint32_t **out_shape, uint32_t *out_ndim);
/* Calls callback for every operator at each run, with monitor_all for the operators' inputs too. A
 * null callback ends that. */
MXNET_DLL int MXPredSetMonitorCallback(PredictorHandle handle, PredMonitorCallback callback, void *callback_handle,
                                       bool monitor_all);
MXNET_DLL int MXNDListFree(NDListHandle handle);

#ifdef __cplusplus
}
#endif

#endif /* MXNET_C_PREDICT_API_H_ */
