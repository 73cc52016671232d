//! Functions of MXNet's C interface that are exported so that programs link. A call returns -1, and
//! its message says what the function belongs to.

use crate::border::{Error, guard};
use std::ffi::c_int;

/// Refuses a call.
fn refuse(function: &str, subject: &str) -> c_int {
    let message = format!("{function} is not part of mxrt: it belongs to {subject}");
    guard(|| Err(Error::absent(message)))
}

macro_rules! absent {
    ($($subject:literal: $($name:ident)*;)*) => {
        $($(
            /// Returns -1: the function is not part of mxrt.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                refuse(stringify!($name), $subject)
            }
        )*)*

        /// Names of the functions that are exported and refuse every call.
        pub const ABSENT: &[&str] = &[$($(stringify!($name),)*)*];
    };
}

absent! {
    "training and automatic differentiation":
        MXAutogradBackward MXAutogradBackwardEx MXAutogradComputeGradient MXAutogradGetSymbol
        MXCustomFunctionRecord MXExecutorBackward MXExecutorBackwardEx MXNDArrayDetach
        MXNDArrayGetGrad MXNDArrayGetGradState MXNDArraySetGradState MXSymbolGrad;
    "distributed training: stores of keys and values, and servers of parameters":
        MXInitPSEnv MXKVStoreBarrier MXKVStoreBroadcast MXKVStoreBroadcastEx MXKVStoreCreate
        MXKVStoreFree MXKVStoreGetGroupSize MXKVStoreGetNumDeadNode MXKVStoreGetRank
        MXKVStoreGetType MXKVStoreInit MXKVStoreInitEx MXKVStoreIsSchedulerNode
        MXKVStoreIsServerNode MXKVStorePull MXKVStorePullEx MXKVStorePullRowSparse
        MXKVStorePullRowSparseEx MXKVStorePullWithSparse MXKVStorePullWithSparseEx MXKVStorePush
        MXKVStorePushEx MXKVStorePushPull MXKVStorePushPullEx MXKVStoreRunServer
        MXKVStoreSendCommmandToServers MXKVStoreSetBarrierBeforeExit
        MXKVStoreSetGradientCompression MXKVStoreSetUpdater MXKVStoreSetUpdaterEx;
    "compiling CUDA source at run time":
        MXRtcCreate MXRtcCudaKernelCall MXRtcCudaKernelCreate MXRtcCudaKernelFree
        MXRtcCudaModuleCreate MXRtcCudaModuleFree MXRtcFree MXRtcPush;
    "loading libraries of C++ classes, and functions of TVM":
        MXLoadLib MXNetFuncCall MXNetFuncFree MXNetFuncGetGlobal MXNetFuncListGlobalNames
        MXNetObjectFree MXTVMBridge;
    "C++ variables of MXNet's engine; MXEnginePushSyncND and MXEnginePushAsyncND take arrays":
        MXEnginePushAsync MXEnginePushSync;
    "quantizing symbols and lowering their precision":
        MXQuantizeSymbol MXReducePrecisionSymbol MXSetCalibTableToQuantizedSymbol;
    "partitioning symbols for other backends":
        MXBuildSubgraphByOpNames MXExecutorGetOptimizedSymbol MXGenAtomicSymbolFromSymbol
        MXGenBackendSubgraph MXOptimizeForBackend MXRemoveSubgraphPropertyOpNames
        MXRemoveSubgraphPropertyOpNamesV2 MXSetSubgraphPropertyOpNames
        MXSetSubgraphPropertyOpNamesV2 MXSymbolCutSubgraph;
    "sparse arrays":
        MXNDArrayCreateSparseEx MXNDArrayCreateSparseEx64 MXNDArrayGetAuxNDArray
        MXNDArrayGetAuxType MXNDArrayGetDataNDArray MXNDArraySyncCheckFormat;
    "memory shared between processes; MXNDArraySaveRawBytes gives bytes to be sent":
        MXNDArrayCreateFromSharedMem MXNDArrayCreateFromSharedMemEx MXNDArrayGetSharedMemHandle;
    "passes over graphs of NNVM":
        NNAddControlDeps NNGraphApplyPasses NNGraphCreate NNGraphFree NNGraphGetJSONAttr
        NNGraphGetSymbol NNGraphSetJSONAttr NNGraphSetNodeEntryListAttr_;
    "operators written by the calling program; in Python, mx.operator.CustomOp has them":
        MXCustomOpRegister;
    "functions of MXNet's time before operators; MXImperativeInvoke calls operators by name":
        MXFuncDescribe MXFuncGetInfo MXFuncInvoke MXFuncInvokeEx MXGetFunction MXListFunctions;
    "the variables of a symbol as handles; NNSymbolListInputNames has their names":
        NNSymbolListInputVariables;
    "settings of the process, which mxrt reads from the environment once":
        MXGetEnv MXSetEnv;
    "hooks on the operators of a callable graph; MXExecutorSetMonitorCallback has them":
        MXCachedOpRegisterOpHook;
}
