/* The functions of NNVM's C interface that programs for inference call: operators and symbols under
 * other names. See mxnet/c_api.h for what callers may rely on.
 */
#ifndef NNVM_C_API_H_
#define NNVM_C_API_H_

#include <mxnet/c_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* option: 0 all inputs, in the order in which a CachedOp takes them; 1 arguments; 2 auxiliary
 * states. recursive_option: 0 attributes of all nodes, 1 of the symbol's own. */
MXNET_DLL const char *NNGetLastError(void);
MXNET_DLL int NNListAllOpNames(nn_uint *out_size, const char ***out_array);
MXNET_DLL int NNGetOpHandle(const char *op_name, OpHandle *op_out);
MXNET_DLL int NNGetOpInfo(OpHandle op, const char **real_name, const char **description,
    nn_uint *num_doc_args, const char ***arg_names, const char ***arg_type_infos,
    const char ***arg_descriptions, const char **return_type);
MXNET_DLL int NNSymbolFree(SymbolHandle symbol);
MXNET_DLL int NNSymbolListInputNames(SymbolHandle symbol, int option, nn_uint *out_size,
    const char ***out_str_array);
MXNET_DLL int NNSymbolGetNumOutputs(SymbolHandle symbol, nn_uint *output_count);
MXNET_DLL int NNSymbolGetOutput(SymbolHandle symbol, nn_uint index, SymbolHandle *out);
MXNET_DLL int NNSymbolGetInternals(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int NNSymbolCopy(SymbolHandle symbol, SymbolHandle *out);
MXNET_DLL int NNSymbolCompose(SymbolHandle sym, const char *name, nn_uint num_args,
    const char **keys, SymbolHandle *args);
MXNET_DLL int NNSymbolCreateAtomicSymbol(OpHandle op, nn_uint num_param, const char **keys,
    const char **vals, SymbolHandle *out);
MXNET_DLL int NNSymbolCreateVariable(const char *name, SymbolHandle *out);
MXNET_DLL int NNSymbolCreateGroup(nn_uint num_symbols, SymbolHandle *symbols, SymbolHandle *out);
MXNET_DLL int NNSymbolGetAttr(SymbolHandle symbol, const char *key, const char **out, int *success);
MXNET_DLL int NNSymbolSetAttrs(SymbolHandle symbol, nn_uint num_param, const char **keys,
    const char **values);
MXNET_DLL int NNSymbolListAttrs(SymbolHandle symbol, int recursive_option, nn_uint *out_size,
    const char ***out);
MXNET_DLL int NNListUniqueOps(nn_uint *out_size, OpHandle **out_array);
MXNET_DLL void NNAPISetLastError(const char *msg);
MXNET_DLL int NNSymbolPrint(SymbolHandle symbol, const char **out_str);
MXNET_DLL int NNSymbolListOutputNames(SymbolHandle symbol, nn_uint *out_size,
    const char ***out_str_array);
MXNET_DLL int NNSymbolGetChildren(SymbolHandle symbol, SymbolHandle *out);

#ifdef __cplusplus
}
#endif

#endif /* NNVM_C_API_H_ */
