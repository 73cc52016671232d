/* The C interface of MXNet 1.9.1, as far as mxrt has it. MXNet's other functions are exported, and
 * a call of one is an error that says what it belongs to.
 *
 * Every function returns 0, or -1 with a message in MXGetLastError(). Every function may be called
 * from any thread, and any number of threads may use the same objects at the same time.
 *
 * Pointers are null (an error unless stated otherwise) or point to memory that the function reads or
 * writes. Texts end in a zero byte and are UTF-8. Arrays have as many elements as the number next to
 * them says. Handles may have any value: they are looked up, so a wrong or freed one is an error.
 *
 * Arrays of handles, names and extents that functions return belong to the calling thread and stay
 * unchanged until it calls the same function again, or for predictors, iterators and readers of
 * records the same function of the same object. An array of none is null. The extents of all shapes
 * of a list are one array. The objects that handles stand for belong to the caller. A negative
 * dev_id is 0.
 *
 * Results are computed in the background. A failure stays with the arrays that depend on it and is
 * returned by whatever waits for them: MXNDArrayWaitToRead, MXNDArraySyncCopyToCPU, MXNDArraySave,
 * MXNDArrayWaitAll.
 */
#ifndef MXNET_C_API_H_
#define MXNET_C_API_H_

#include <mxnet/c_types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *AtomicSymbolCreator;
typedef void *DataIterCreator;
typedef const void *ContextHandle;
typedef const void *EngineFnPropertyHandle;

/* Told the name and the array of a result. A C++ exception must not leave it. */
typedef void (*ExecutorMonitorCallback)(const char *, NDArrayHandle, void *);
/* Functions for the engine; see MXEnginePushSyncND. */
typedef void (*EngineSyncFunc)(void *run_context, void *param);
typedef void (*EngineAsyncFunc)(void *run_context, void *on_complete, void *param);
typedef void (*EngineFuncParamDeleter)(void *param);

struct LibFeature {
    const char *name;
    bool enabled;
};

/* ---- errors ---- */

/* MXGetLastError: MXNetError, NotImplementedError or InternalError, a colon, and text. Never null;
 * valid until the thread's next error. MXGetVersion: 10901. MXSetIsNumpyShape: 0 off, 1 this thread,
 * 2 all. MXStorageEmptyCache gives unused memory back. */
MXNET_DLL const char *MXGetLastError(void);
MXNET_DLL int MXLibInfoFeatures(const struct LibFeature **libFeature, size_t *size);
MXNET_DLL int MXRandomSeed(int seed);
MXNET_DLL int MXRandomSeedContext(int seed, int dev_type, int dev_id);
MXNET_DLL int MXNotifyShutdown(void);
MXNET_DLL int MXSetNumOMPThreads(int thread_num);
MXNET_DLL int MXEngineSetBulkSize(int bulk_size, int *prev_bulk_size);
MXNET_DLL int MXGetGPUCount(int *out);
MXNET_DLL int MXGetGPUMemoryInformation64(int dev, uint64_t *free_mem, uint64_t *total_mem);
MXNET_DLL int MXGetVersion(int *out);
/* The environment of the process. A value belongs to the environment; null: there is none. MXSetEnv with
 * null removes the variable; no other thread may use the environment at the same time, and
 * settings that were read before do not change. */
MXNET_DLL int MXGetEnv(const char *name, const char **value);
MXNET_DLL int MXSetEnv(const char *name, const char *value);
/* The modes of a thread. In that of training, operators and CachedOps compute as in training: Dropout
 * drops, BatchNorm takes the statistics of the batch and leaves its moving averages unchanged. Nothing
 * is recorded, and gradients are refused. */
MXNET_DLL int MXAutogradSetIsRecording(int is_recording, int *prev);
MXNET_DLL int MXAutogradSetIsTraining(int is_training, int *prev);
MXNET_DLL int MXAutogradIsRecording(bool *curr);
MXNET_DLL int MXAutogradIsTraining(bool *curr);
MXNET_DLL int MXIsNumpyShape(int *curr);
MXNET_DLL int MXSetIsNumpyShape(int is_np_shape, int *prev);
MXNET_DLL int MXStorageEmptyCache(int dev_type, int dev_id);
MXNET_DLL int MXEnginePushAsyncND(EngineAsyncFunc async_func, void *func_param,
    EngineFuncParamDeleter deleter, ContextHandle ctx_handle, NDArrayHandle *const_nds_handle,
    int num_const_nds, NDArrayHandle *mutable_nds_handle, int num_mutable_nds,
    EngineFnPropertyHandle prop_handle MXNET_DEFAULT(NULL), int priority MXNET_DEFAULT(0),
    const char *opr_name MXNET_DEFAULT(NULL), bool wait MXNET_DEFAULT(false));
MXNET_DLL int MXEnginePushSyncND(EngineSyncFunc sync_func, void *func_param,
    EngineFuncParamDeleter deleter, ContextHandle ctx_handle, NDArrayHandle *const_nds_handle,
    int num_const_nds, NDArrayHandle *mutable_nds_handle, int num_mutable_nds,
    EngineFnPropertyHandle prop_handle MXNET_DEFAULT(NULL), int priority MXNET_DEFAULT(0),
    const char *opr_name MXNET_DEFAULT(NULL));
MXNET_DLL int MXGetGPUMemoryInformation(int dev, int *free_mem, int *total_mem);
MXNET_DLL int MXAutogradMarkVariables(uint32_t num_var, NDArrayHandle *var_handles,
    uint32_t *reqs_array, NDArrayHandle *grad_handles);
MXNET_DLL int MXKVStoreIsWorkerNode(int *ret);
MXNET_DLL int MXKVStoreIsServerNode(int *ret);
MXNET_DLL int MXKVStoreIsSchedulerNode(int *ret);
/* Functions of MXNet's time before operators and those of TVM: there are none. */
MXNET_DLL int MXListFunctions(uint32_t *out_size, FunctionHandle **out_array);
MXNET_DLL int MXGetFunction(const char *name, FunctionHandle *out);
MXNET_DLL int MXNetFuncListGlobalNames(int *out_size, const char ***out_array);
MXNET_DLL int MXNetFuncGetGlobal(const char *name, void **out);

/* ---- arrays ---- */

/* dev_type: 1 cpu, 2 gpu, 3 cpu_pinned, 5 cpu_shared, 12 sim (devices that compute on the cpu, for
 * tests). The memory of an array on a device is the device's; operators run where their inputs are.
 * dtype: 0 float32, 1 float64, 2 float16, 3 uint8, 4 int32, 5 int8, 6 int64, 7 bool, 8 int16, 9
 * uint16, 10 uint32, 11 uint64, 12 bfloat16. New arrays hold zeros. Slice, At and Reshape share the
 * memory. MXNDArrayCreateNone: an array that gets shape and value when it is given to an operator
 * as output. MXNDArrayGetData waits and gives an address, valid until the array is freed, current
 * until an operator writes the array; the next call of a graph sees what is written there. size of
 * the copies counts elements. keys of MXNDArraySave may be null. MXNDArrayReshape: extents are
 * positive, 0 for that of the array at this place, or one -1 for what the others leave; a shape of
 * fewer elements is the beginning of the array. MXNDArrayReshape64 takes the operator's codes. */
MXNET_DLL int MXNDArrayCreateNone(NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreate(const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id,
    int delay_alloc, NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreateEx(const uint32_t *shape, uint32_t ndim, int dev_type, int dev_id,
    int delay_alloc, int dtype, NDArrayHandle *out);
MXNET_DLL int MXNDArrayLoadFromRawBytes(const void *buf, size_t size, NDArrayHandle *out);
/* DLPack (dlpack.h, DLManagedTensor): arrays shared with other libraries. MXNDArrayToDLPack waits for
 * the array; the consumer calls the deleter of the tensor once, and what it writes is not ordered with
 * operators. MXNDArrayFromDLPack takes the tensor: its deleter is called when no thread uses the array
 * any more. transient_handle: the struct itself may be gone when the function returns. A tensor that
 * no consumer has taken is freed by MXNDArrayCallDLPackDeleter. */
MXNET_DLL int MXNDArrayToDLPack(NDArrayHandle handle, DLManagedTensorHandle *out_dlpack);
MXNET_DLL int MXNDArrayFromDLPack(DLManagedTensorHandle dlpack, NDArrayHandle *out_handle);
MXNET_DLL int MXNDArrayFromDLPackEx(DLManagedTensorHandle dlpack, const bool transient_handle,
    NDArrayHandle *out_handle);
MXNET_DLL int MXNDArrayCallDLPackDeleter(DLManagedTensorHandle dlpack);
/* Memory shared between processes. MXNDArrayGetSharedMemHandle waits and gives the number of this
 * process and a file descriptor, to be sent to another or inherited. Of an array on cpu_shared that
 * MXNDArrayCreate(Ex) made it is the array's own, valid as long as that; of any other array it is a
 * copy's, and the caller closes it. MXNDArrayCreateFromSharedMem(Ex) makes an array in the memory of
 * a descriptor of this process and takes the descriptor over, unless it fails. What other processes
 * write is not ordered with operators. */
MXNET_DLL int MXNDArrayGetSharedMemHandle(NDArrayHandle handle, int *shared_pid, int *shared_id);
MXNET_DLL int MXNDArrayCreateFromSharedMem(int shared_pid, int shared_id, const uint32_t *shape,
    uint32_t ndim, int dtype, NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreateFromSharedMemEx(int shared_pid, int shared_id, const int *shape,
    int ndim, int dtype, NDArrayHandle *out);
MXNET_DLL int MXNDArraySaveRawBytes(NDArrayHandle handle, size_t *out_size, const char **out_buf);
MXNET_DLL int MXNDArraySave(const char *fname, uint32_t num_args, NDArrayHandle *args,
    const char **keys);
MXNET_DLL int MXNDArrayLoad(const char *fname, uint32_t *out_size, NDArrayHandle **out_arr,
    uint32_t *out_name_size, const char ***out_names);
MXNET_DLL int MXNDArrayLoadFromBuffer(const void *ndarray_buffer, size_t size, uint32_t *out_size,
    NDArrayHandle **out_arr, uint32_t *out_name_size, const char ***out_names);
MXNET_DLL int MXNDArraySyncCopyFromCPU(NDArrayHandle handle, const void *data, size_t size);
MXNET_DLL int MXNDArraySyncCopyToCPU(NDArrayHandle handle, void *data, size_t size);
MXNET_DLL int MXNDArraySyncCopyFromNDArray(NDArrayHandle handle_dst, const NDArrayHandle handle_src,
    const int i);
MXNET_DLL int MXNDArrayWaitToRead(NDArrayHandle handle);
MXNET_DLL int MXNDArrayWaitToWrite(NDArrayHandle handle);
MXNET_DLL int MXNDArrayWaitAll(void);
MXNET_DLL int MXNDArrayFree(NDArrayHandle handle);
MXNET_DLL int MXNDArraySlice(NDArrayHandle handle, uint32_t slice_begin, uint32_t slice_end,
    NDArrayHandle *out);
MXNET_DLL int MXNDArrayAt(NDArrayHandle handle, uint32_t idx, NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetStorageType(NDArrayHandle handle, int *out_storage_type);
MXNET_DLL int MXNDArrayCreateSparseEx(int storage_type, const uint32_t *shape, uint32_t ndim,
    int dev_type, int dev_id, int delay_alloc, int dtype, uint32_t num_aux, int *aux_type,
    uint32_t *aux_ndims, const uint32_t *aux_shape, NDArrayHandle *out);
MXNET_DLL int MXNDArrayCreateSparseEx64(int storage_type, const int64_t *shape, int ndim,
    int dev_type, int dev_id, int delay_alloc, int dtype, uint32_t num_aux, int *aux_type,
    int *aux_ndims, const int64_t *aux_shape, NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetAuxType(NDArrayHandle handle, uint32_t i, int *out_type);
MXNET_DLL int MXNDArrayGetAuxNDArray(NDArrayHandle handle, uint32_t i, NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetDataNDArray(NDArrayHandle handle, NDArrayHandle *out);
MXNET_DLL int MXNDArraySyncCheckFormat(NDArrayHandle handle, const bool full_check);
MXNET_DLL int MXNDArrayReshape(NDArrayHandle handle, int ndim, int *dims, NDArrayHandle *out);
MXNET_DLL int MXNDArrayReshape64(NDArrayHandle handle, int ndim, dim_t *dims, bool reverse,
    NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetShape(NDArrayHandle handle, uint32_t *out_dim,
    const uint32_t **out_pdata);
MXNET_DLL int MXNDArrayGetShapeEx(NDArrayHandle handle, int *out_dim, const int **out_pdata);
MXNET_DLL int MXNDArrayGetData(NDArrayHandle handle, void **out_pdata);
MXNET_DLL int MXNDArrayGetDType(NDArrayHandle handle, int *out_dtype);
MXNET_DLL int MXNDArrayGetContext(NDArrayHandle handle, int *out_dev_type, int *out_dev_id);
MXNET_DLL int MXNDArrayCreateEx64(const int64_t *shape, int ndim, int dev_type, int dev_id,
    int delay_alloc, int dtype, NDArrayHandle *out);
MXNET_DLL int MXNDArraySlice64(NDArrayHandle handle, int64_t slice_begin, int64_t slice_end,
    NDArrayHandle *out);
MXNET_DLL int MXNDArrayAt64(NDArrayHandle handle, int64_t idx, NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetShapeEx64(NDArrayHandle handle, int *out_dim, const int64_t **out_pdata);
MXNET_DLL int MXShallowCopyNDArray(NDArrayHandle src, NDArrayHandle *out);
/* There are no gradients: null, 0, and another handle of the same array. */
MXNET_DLL int MXNDArrayGetGrad(NDArrayHandle handle, NDArrayHandle *out);
MXNET_DLL int MXNDArrayGetGradState(NDArrayHandle handle, int *out);
MXNET_DLL int MXNDArrayDetach(NDArrayHandle handle, NDArrayHandle *out);

/* ---- operators ---- */

/* *outputs null: arrays are made for the results, and *num_outputs is set. Otherwise the results go
 * into the *num_outputs given arrays. Text about operators lives as long as the process. */
MXNET_DLL int MXImperativeInvoke(AtomicSymbolCreator creator, int num_inputs, NDArrayHandle *inputs,
    int *num_outputs, NDArrayHandle **outputs, int num_params, const char **param_keys,
    const char **param_vals);
MXNET_DLL int MXImperativeInvokeEx(AtomicSymbolCreator creator, int num_inputs,
    NDArrayHandle *inputs, int *num_outputs, NDArrayHandle **outputs, int num_params,
    const char **param_keys, const char **param_vals, const int **out_stypes);
MXNET_DLL int MXListAllOpNames(uint32_t *out_size, const char ***out_array);
MXNET_DLL int MXSymbolListAtomicSymbolCreators(uint32_t *out_size, AtomicSymbolCreator **out_array);
MXNET_DLL int MXSymbolGetAtomicSymbolName(AtomicSymbolCreator creator, const char **name);
MXNET_DLL int MXSymbolGetAtomicSymbolInfo(AtomicSymbolCreator creator, const char **name,
    const char **description, uint32_t *num_args, const char ***arg_names,
    const char ***arg_type_infos, const char ***arg_descriptions, const char **key_var_num_args,
    const char **return_type MXNET_DEFAULT(NULL));

/* Operators of the program. A node or call of the operator Custom whose attribute op_type is the name
 * calls creator with its other attributes, which fills in functions and their last arguments, in
 * this order: delete, list_arguments, list_outputs, list_auxiliary_states, infer_shape,
 * declare_backward_dependency (not called), create_operator, infer_type. create_operator fills in
 * delete and forward, whose arrays have the tags 0 input, 1 output, 4 state; it frees their handles,
 * and may wait. What create_operator makes serves one call at a time; up to 32 that no call uses are
 * kept until the graph is freed. They have the types of MXNet's CustomOp...Func, are called from
 * threads of the library, and return 0 where they fail. */
struct MXCallbackList {
    int num_callbacks;
    int (**callbacks)(void);
    void **contexts;
};
typedef int (*CustomOpPropCreator)(const char *op_type, const int num_kwargs, const char **keys,
    const char **values, struct MXCallbackList *ret);
MXNET_DLL int MXCustomOpRegister(const char *op_type, CustomOpPropCreator creator);

/* ---- symbols ---- */

/* MXSymbolCreateAtomicSymbol makes an operator, MXSymbolCompose gives it inputs: in order, or by
 * name where keys is not null. Shapes: input i has the extents arg_shape_data[arg_ind_ptr[i]] up to
 * arg_shape_data[arg_ind_ptr[i + 1]]; 0 is unknown (-1 with numpy's shapes). */
MXNET_DLL int MXSymbolCreateAtomicSymbol(AtomicSymbolCreator creator, uint32_t num_param,
    const char **keys, const char **vals, SymbolHandle *out);
MXNET_DLL int MXSymbolCreateVariable(const char *name, SymbolHandle *out);
MXNET_DLL int MXSymbolCreateGroup(uint32_t num_symbols, SymbolHandle *symbols, SymbolHandle *out);
MXNET_DLL int MXSymbolCreateFromFile(const char *fname, SymbolHandle *out);
MXNET_DLL int MXSymbolCreateFromJSON(const char *json, SymbolHandle *out);
MXNET_DLL int MXSymbolSaveToFile(SymbolHandle symbol, const char *fname);
MXNET_DLL int MXSymbolSaveToJSON(SymbolHandle symbol, const char **out_json);
MXNET_DLL int MXSymbolFree(SymbolHandle symbol);
MXNET_DLL int MXSymbolCopy(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int MXSymbolPrint(SymbolHandle symbol, const char **out_str);
MXNET_DLL int MXSymbolGetName(SymbolHandle symbol, const char **out, int *success);
MXNET_DLL int MXSymbolGetAttr(SymbolHandle symbol, const char *key, const char **out, int *success);
MXNET_DLL int MXSymbolSetAttr(SymbolHandle symbol, const char *key, const char *value);
MXNET_DLL int MXSymbolListAttr(SymbolHandle symbol, uint32_t *out_size, const char ***out);
MXNET_DLL int MXSymbolListAttrShallow(SymbolHandle symbol, uint32_t *out_size, const char ***out);
MXNET_DLL int MXSymbolListArguments(SymbolHandle symbol, uint32_t *out_size,
    const char ***out_str_array);
MXNET_DLL int MXSymbolListOutputs(SymbolHandle symbol, uint32_t *out_size,
    const char ***out_str_array);
MXNET_DLL int MXSymbolGetNumOutputs(SymbolHandle symbol, uint32_t *output_count);
/* The operators read what amp_cast and amp_multicast would convert. */
MXNET_DLL int MXSymbolRemoveAmpCast(SymbolHandle sym_handle, SymbolHandle *ret_sym_handle);
/* Leaves the nodes of a subgraph in a symbol: those whose attribute __subgraph_name__ is that of the
 * first output. What they read from outside are variables now, and returned. */
MXNET_DLL int MXSymbolCutSubgraph(SymbolHandle sym, SymbolHandle **input_symbols, int *input_size);
/* A copy of the symbol: every graph is optimised when it is compiled. The backends are MKLDNN and
 * MKLDNN_QUANTIZE, those of MXNet's build; another name is an error. No parameter is added. */
MXNET_DLL int MXGenBackendSubgraph(SymbolHandle sym_handle, const char *backend,
    SymbolHandle *ret_sym_handle);
MXNET_DLL int MXOptimizeForBackend(SymbolHandle sym_handle, const char *backend_name, const int dev_type,
    SymbolHandle *ret_sym_handle, const uint32_t args_len, NDArrayHandle *in_args_handle,
    const uint32_t aux_len, NDArrayHandle *in_aux_handle, const uint32_t num_options,
    const char **keys, const char **vals, const uint32_t num_input_shapes,
    const char **input_shape_names, const int64_t *input_shape_data, const uint32_t *input_shape_idx,
    const uint32_t num_input_dtypes, const char **input_dtype_names, const int *input_dtypes,
    const uint32_t num_input_stypes, const char **input_stype_names, const int *input_stypes,
    bool skip_infer, int *new_args_cnt, NDArrayHandle **new_args_handle,
    char ***new_arg_names_handle, int *new_aux_cnt, NDArrayHandle **new_aux_handle,
    char ***new_aux_names_handle);
MXNET_DLL int MXSymbolGetInternals(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int MXSymbolGetChildren(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int MXSymbolGetOutput(SymbolHandle symbol, uint32_t index, SymbolHandle *out);
MXNET_DLL int MXSymbolListAuxiliaryStates(SymbolHandle symbol, uint32_t *out_size,
    const char ***out_str_array);
MXNET_DLL int MXSymbolCompose(SymbolHandle sym, const char *name, uint32_t num_args,
    const char **keys, SymbolHandle *args);
MXNET_DLL int MXSymbolInferShape(SymbolHandle sym, uint32_t num_args, const char **keys,
    const uint32_t *arg_ind_ptr, const uint32_t *arg_shape_data, uint32_t *in_shape_size,
    const uint32_t **in_shape_ndim, const uint32_t ***in_shape_data, uint32_t *out_shape_size,
    const uint32_t **out_shape_ndim, const uint32_t ***out_shape_data, uint32_t *aux_shape_size,
    const uint32_t **aux_shape_ndim, const uint32_t ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapeEx(SymbolHandle sym, uint32_t num_args, const char **keys,
    const uint32_t *arg_ind_ptr, const int *arg_shape_data, uint32_t *in_shape_size,
    const int **in_shape_ndim, const int ***in_shape_data, uint32_t *out_shape_size,
    const int **out_shape_ndim, const int ***out_shape_data, uint32_t *aux_shape_size,
    const int **aux_shape_ndim, const int ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferType(SymbolHandle sym, uint32_t num_args, const char **keys,
    const int *arg_type_data, uint32_t *in_type_size, const int **in_type_data,
    uint32_t *out_type_size, const int **out_type_data, uint32_t *aux_type_size,
    const int **aux_type_data, int *complete);
MXNET_DLL int MXSymbolInferTypePartial(SymbolHandle sym, uint32_t num_args, const char **keys,
    const int *arg_type_data, uint32_t *in_type_size, const int **in_type_data,
    uint32_t *out_type_size, const int **out_type_data, uint32_t *aux_type_size,
    const int **aux_type_data, int *complete);
MXNET_DLL int MXSymbolGetInputSymbols(SymbolHandle sym, SymbolHandle **inputs, int *input_size);
MXNET_DLL int MXSymbolInferShapeEx64(SymbolHandle sym, uint32_t num_args, const char **keys,
    const int64_t *arg_ind_ptr, const int64_t *arg_shape_data, size_t *in_shape_size,
    const int **in_shape_ndim, const int64_t ***in_shape_data, size_t *out_shape_size,
    const int **out_shape_ndim, const int64_t ***out_shape_data, size_t *aux_shape_size,
    const int **aux_shape_ndim, const int64_t ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapePartial(SymbolHandle sym, uint32_t num_args, const char **keys,
    const uint32_t *arg_ind_ptr, const uint32_t *arg_shape_data, uint32_t *in_shape_size,
    const uint32_t **in_shape_ndim, const uint32_t ***in_shape_data, uint32_t *out_shape_size,
    const uint32_t **out_shape_ndim, const uint32_t ***out_shape_data, uint32_t *aux_shape_size,
    const uint32_t **aux_shape_ndim, const uint32_t ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapePartialEx(SymbolHandle sym, uint32_t num_args, const char **keys,
    const uint32_t *arg_ind_ptr, const int *arg_shape_data, uint32_t *in_shape_size,
    const int **in_shape_ndim, const int ***in_shape_data, uint32_t *out_shape_size,
    const int **out_shape_ndim, const int ***out_shape_data, uint32_t *aux_shape_size,
    const int **aux_shape_ndim, const int ***aux_shape_data, int *complete);
MXNET_DLL int MXSymbolInferShapePartialEx64(SymbolHandle sym, uint32_t num_args, const char **keys,
    const int64_t *arg_ind_ptr, const int64_t *arg_shape_data, size_t *in_shape_size,
    const int **in_shape_ndim, const int64_t ***in_shape_data, size_t *out_shape_size,
    const int **out_shape_ndim, const int64_t ***out_shape_data, size_t *aux_shape_size,
    const int **aux_shape_ndim, const int64_t ***aux_shape_data, int *complete);
MXNET_DLL int MXShallowCopySymbol(SymbolHandle src, SymbolHandle *out);

/* ---- callable graphs ---- */

/* thread_safe is accepted and changes nothing: every CachedOp may be called from any number of
 * threads. Results as with MXImperativeInvoke. */
MXNET_DLL int MXCreateCachedOp(SymbolHandle handle, CachedOpHandle *out);
MXNET_DLL int MXCreateCachedOpEx(SymbolHandle handle, int num_flags, const char **keys,
    const char **vals, CachedOpHandle *out);
MXNET_DLL int MXCreateCachedOpEX(SymbolHandle handle, int num_flags, const char **keys,
    const char **vals, CachedOpHandle *out, bool thread_safe MXNET_DEFAULT(false));
MXNET_DLL int MXFreeCachedOp(CachedOpHandle handle);
MXNET_DLL int MXInvokeCachedOp(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs,
    int *num_outputs, NDArrayHandle **outputs);
MXNET_DLL int MXInvokeCachedOpEx(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs,
    int *num_outputs, NDArrayHandle **outputs, const int **out_stypes);
MXNET_DLL int MXInvokeCachedOpEX(CachedOpHandle handle, int num_inputs, NDArrayHandle *inputs,
    int *num_outputs, NDArrayHandle **outputs, const int **out_stypes,
    bool thread_safe MXNET_DEFAULT(false));
MXNET_DLL int MXFreeCachedOpEX(CachedOpHandle handle, bool thread_safe MXNET_DEFAULT(false));

/* ---- executors ---- */

/* Gradients are accepted and never written. With is_train a run computes as in training; in loops and
 * branches the mode of the thread decides. Handles of arrays that are returned belong to the caller.
 * Monitor callbacks free the arrays that they get. */
MXNET_DLL int MXExecutorFree(ExecutorHandle handle);
MXNET_DLL int MXExecutorPrint(ExecutorHandle handle, const char **out_str);
MXNET_DLL int MXExecutorForward(ExecutorHandle handle, int is_train);
MXNET_DLL int MXExecutorOutputs(ExecutorHandle handle, uint32_t *out_size, NDArrayHandle **out);
MXNET_DLL int MXExecutorBind(SymbolHandle symbol_handle, int dev_type, int dev_id, uint32_t len,
    NDArrayHandle *in_args, NDArrayHandle *arg_grad_store, uint32_t *grad_req_type,
    uint32_t aux_states_len, NDArrayHandle *aux_states, ExecutorHandle *out);
MXNET_DLL int MXExecutorBindX(SymbolHandle symbol_handle, int dev_type, int dev_id,
    uint32_t num_map_keys, const char **map_keys, const int *map_dev_types, const int *map_dev_ids,
    uint32_t len, NDArrayHandle *in_args, NDArrayHandle *arg_grad_store, uint32_t *grad_req_type,
    uint32_t aux_states_len, NDArrayHandle *aux_states, ExecutorHandle *out);
MXNET_DLL int MXExecutorBindEX(SymbolHandle symbol_handle, int dev_type, int dev_id,
    uint32_t num_map_keys, const char **map_keys, const int *map_dev_types, const int *map_dev_ids,
    uint32_t len, NDArrayHandle *in_args, NDArrayHandle *arg_grad_store, uint32_t *grad_req_type,
    uint32_t aux_states_len, NDArrayHandle *aux_states, ExecutorHandle shared_exec,
    ExecutorHandle *out);
MXNET_DLL int MXExecutorSimpleBind(SymbolHandle symbol_handle, int dev_type, int dev_id,
    const uint32_t num_g2c_keys, const char **g2c_keys, const int *g2c_dev_types,
    const int *g2c_dev_ids, const uint32_t provided_grad_req_list_len,
    const char **provided_grad_req_names, const char **provided_grad_req_types,
    const uint32_t num_provided_arg_shapes, const char **provided_arg_shape_names,
    const uint32_t *provided_arg_shape_data, const uint32_t *provided_arg_shape_idx,
    const uint32_t num_provided_arg_dtypes, const char **provided_arg_dtype_names,
    const int *provided_arg_dtypes, const uint32_t num_provided_arg_stypes,
    const char **provided_arg_stype_names, const int *provided_arg_stypes,
    const uint32_t num_shared_arg_names, const char **shared_arg_name_list, int *shared_buffer_len,
    const char **shared_buffer_name_list, NDArrayHandle *shared_buffer_handle_list,
    const char ***updated_shared_buffer_name_list,
    NDArrayHandle **updated_shared_buffer_handle_list, uint32_t *num_in_args,
    NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
    NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle, ExecutorHandle *out);
MXNET_DLL int MXExecutorSimpleBindEx(SymbolHandle symbol_handle, int dev_type, int dev_id,
    const uint32_t num_g2c_keys, const char **g2c_keys, const int *g2c_dev_types,
    const int *g2c_dev_ids, const uint32_t provided_grad_req_list_len,
    const char **provided_grad_req_names, const char **provided_grad_req_types,
    const uint32_t num_provided_arg_shapes, const char **provided_arg_shape_names,
    const int *provided_arg_shape_data, const uint32_t *provided_arg_shape_idx,
    const uint32_t num_provided_arg_dtypes, const char **provided_arg_dtype_names,
    const int *provided_arg_dtypes, const uint32_t num_provided_arg_stypes,
    const char **provided_arg_stype_names, const int *provided_arg_stypes,
    const uint32_t num_shared_arg_names, const char **shared_arg_name_list, int *shared_buffer_len,
    const char **shared_buffer_name_list, NDArrayHandle *shared_buffer_handle_list,
    const char ***updated_shared_buffer_name_list,
    NDArrayHandle **updated_shared_buffer_handle_list, uint32_t *num_in_args,
    NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
    NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle, ExecutorHandle *out);
MXNET_DLL int MXExecutorReshape(int partial_shaping, int allow_up_sizing, int dev_type, int dev_id,
    uint32_t num_map_keys, const char **map_keys, const int *map_dev_types, const int *map_dev_ids,
    const uint32_t num_provided_arg_shapes, const char **provided_arg_shape_names,
    const uint32_t *provided_arg_shape_data, const uint32_t *provided_arg_shape_idx,
    uint32_t *num_in_args, NDArrayHandle **in_args, NDArrayHandle **arg_grads,
    uint32_t *num_aux_states, NDArrayHandle **aux_states, ExecutorHandle shared_exec,
    ExecutorHandle *out);
MXNET_DLL int MXExecutorReshapeEx(int partial_shaping, int allow_up_sizing, int dev_type,
    int dev_id, uint32_t num_map_keys, const char **map_keys, const int *map_dev_types,
    const int *map_dev_ids, const uint32_t num_provided_arg_shapes,
    const char **provided_arg_shape_names, const int *provided_arg_shape_data,
    const uint32_t *provided_arg_shape_idx, uint32_t *num_in_args, NDArrayHandle **in_args,
    NDArrayHandle **arg_grads, uint32_t *num_aux_states, NDArrayHandle **aux_states,
    ExecutorHandle shared_exec, ExecutorHandle *out);
/* The symbol that was bound. */
MXNET_DLL int MXExecutorGetOptimizedSymbol(ExecutorHandle handle, SymbolHandle *out);
MXNET_DLL int MXExecutorSetMonitorCallback(ExecutorHandle handle, ExecutorMonitorCallback callback,
    void *callback_handle);
MXNET_DLL int MXExecutorSetMonitorCallbackEX(ExecutorHandle handle,
    ExecutorMonitorCallback callback, void *callback_handle, bool monitor_all);
MXNET_DLL int MXExecutorSimpleBindEx64(SymbolHandle symbol_handle, int dev_type, int dev_id,
    const uint32_t num_g2c_keys, const char **g2c_keys, const int *g2c_dev_types,
    const int *g2c_dev_ids, const uint32_t provided_grad_req_list_len,
    const char **provided_grad_req_names, const char **provided_grad_req_types,
    const uint32_t num_provided_arg_shapes, const char **provided_arg_shape_names,
    const int64_t *provided_arg_shape_data, const uint32_t *provided_arg_shape_idx,
    const uint32_t num_provided_arg_dtypes, const char **provided_arg_dtype_names,
    const int *provided_arg_dtypes, const uint32_t num_provided_arg_stypes,
    const char **provided_arg_stype_names, const int *provided_arg_stypes,
    const uint32_t num_shared_arg_names, const char **shared_arg_name_list, int *shared_buffer_len,
    const char **shared_buffer_name_list, NDArrayHandle *shared_buffer_handle_list,
    const char ***updated_shared_buffer_name_list,
    NDArrayHandle **updated_shared_buffer_handle_list, uint32_t *num_in_args,
    NDArrayHandle **in_args, NDArrayHandle **arg_grads, uint32_t *num_aux_states,
    NDArrayHandle **aux_states, ExecutorHandle shared_exec_handle, ExecutorHandle *out);

/* ---- data iterators and recordio ---- */

MXNET_DLL int MXListDataIters(uint32_t *out_size, DataIterCreator **out_array);
MXNET_DLL int MXDataIterCreateIter(DataIterCreator handle, uint32_t num_param, const char **keys,
    const char **vals, DataIterHandle *out);
MXNET_DLL int MXDataIterGetIterInfo(DataIterCreator creator, const char **name,
    const char **description, uint32_t *num_args, const char ***arg_names,
    const char ***arg_type_infos, const char ***arg_descriptions);
MXNET_DLL int MXDataIterFree(DataIterHandle handle);
MXNET_DLL int MXDataIterNext(DataIterHandle handle, int *out);
MXNET_DLL int MXDataIterBeforeFirst(DataIterHandle handle);
MXNET_DLL int MXDataIterGetData(DataIterHandle handle, NDArrayHandle *out);
MXNET_DLL int MXDataIterGetIndex(DataIterHandle handle, uint64_t **out_index, uint64_t *out_size);
MXNET_DLL int MXDataIterGetPadNum(DataIterHandle handle, int *pad);
MXNET_DLL int MXDataIterGetLabel(DataIterHandle handle, NDArrayHandle *out);
MXNET_DLL int MXRecordIOWriterCreate(const char *uri, RecordIOHandle *out);
MXNET_DLL int MXRecordIOWriterFree(RecordIOHandle handle);
MXNET_DLL int MXRecordIOWriterWriteRecord(RecordIOHandle handle, const char *buf, size_t size);
MXNET_DLL int MXRecordIOWriterTell(RecordIOHandle handle, size_t *pos);
MXNET_DLL int MXRecordIOReaderCreate(const char *uri, RecordIOHandle *out);
MXNET_DLL int MXRecordIOReaderFree(RecordIOHandle handle);
MXNET_DLL int MXRecordIOReaderReadRecord(RecordIOHandle handle, char const **buf, size_t *size);
MXNET_DLL int MXRecordIOReaderSeek(RecordIOHandle handle, size_t pos);
MXNET_DLL int MXRecordIOReaderTell(RecordIOHandle handle, size_t *pos);

/* ---- profiler ---- */

MXNET_DLL int MXSetProcessProfilerConfig(int num_params, const char *const *keys,
    const char *const *vals, KVStoreHandle kvstoreHandle);
MXNET_DLL int MXSetProcessProfilerState(int state, int profile_process,
    KVStoreHandle kvStoreHandle);
MXNET_DLL int MXDumpProcessProfile(int finished, int profile_process, KVStoreHandle kvStoreHandle);
MXNET_DLL int MXAggregateProfileStatsPrintEx(const char **out_str, int reset, int format,
    int sort_by, int ascending);
MXNET_DLL int MXProcessProfilePause(int paused, int profile_process, KVStoreHandle kvStoreHandle);
MXNET_DLL int MXSetProfilerConfig(int num_params, const char *const *keys, const char *const *vals);
MXNET_DLL int MXSetProfilerState(int state);
MXNET_DLL int MXDumpProfile(int finished);
MXNET_DLL int MXAggregateProfileStatsPrint(const char **out_str, int reset);
MXNET_DLL int MXProfilePause(int paused);
/* What the program records itself. It is written by MXDumpProfile, and the times of tasks, frames and
 * events are in the table. */
MXNET_DLL int MXProfileCreateDomain(const char *domain, ProfileHandle *out);
MXNET_DLL int MXProfileCreateTask(ProfileHandle domain, const char *task_name, ProfileHandle *out);
MXNET_DLL int MXProfileCreateFrame(ProfileHandle domain, const char *frame_name, ProfileHandle *out);
MXNET_DLL int MXProfileCreateEvent(const char *event_name, ProfileHandle *out);
MXNET_DLL int MXProfileCreateCounter(ProfileHandle domain, const char *counter_name, ProfileHandle *out);
MXNET_DLL int MXProfileDestroyHandle(ProfileHandle frame_handle);
MXNET_DLL int MXProfileDurationStart(ProfileHandle duration_handle);
MXNET_DLL int MXProfileDurationStop(ProfileHandle duration_handle);
MXNET_DLL int MXProfileSetCounter(ProfileHandle counter_handle, uint64_t value);
MXNET_DLL int MXProfileAdjustCounter(ProfileHandle counter_handle, int64_t value);
/* scope: global, process, thread, task or marker. */
MXNET_DLL int MXProfileSetMarker(ProfileHandle domain, const char *instant_marker_name, const char *scope);

#ifdef __cplusplus
}
#endif

#endif /* MXNET_C_API_H_ */
