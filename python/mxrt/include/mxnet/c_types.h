/* Types and macros that the headers share. */
#ifndef MXNET_C_TYPES_H_
#define MXNET_C_TYPES_H_

#include <stddef.h>
#include <stdint.h>
#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifndef MXNET_DLL
#define MXNET_DLL
#endif
#ifndef MXNET_DEFAULT
#ifdef __cplusplus
#define MXNET_DEFAULT(x) = x
#else
#define MXNET_DEFAULT(x)
#endif
#endif

typedef uint32_t mx_uint;
typedef float mx_float;
typedef int64_t dim_t;
typedef unsigned int nn_uint;
typedef const void *FunctionHandle;
typedef void *NDArrayHandle;
typedef void *SymbolHandle;
typedef void *OpHandle;
typedef void *CachedOpHandle;
typedef void *ExecutorHandle;
typedef void *PredictorHandle;
typedef void *NDListHandle;
typedef void *DataIterHandle;
typedef void *RecordIOHandle;
typedef void *ProfileHandle;
typedef void *KVStoreHandle;
typedef void *DLManagedTensorHandle;

#endif /* MXNET_C_TYPES_H_ */
