//! Functions of MXNet's C interface that are exported so that programs link. A call returns -1, and
//! its message says what the function belongs to. Lists of what there is none of are empty.

use crate::border::{Error, c_functions, guard};
use crate::pointers::{put, text};
use std::ffi::{c_char, c_int, c_void};

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

c_functions! {
    /// The functions of MXNet's time before operators: none.
    fn MXListFunctions(out_size: *mut u32, out_array: *mut *mut *mut c_void) {
        put(out_size, 0, "out_size")?;
        put(out_array, std::ptr::null_mut(), "out_array")
    }

    /// A function of MXNet's time before operators by its name: null, as there are none.
    fn MXGetFunction(name: *const c_char, out: *mut *mut c_void) {
        text(name, "name")?;
        put(out, std::ptr::null_mut(), "out")
    }

    /// The names of the functions of TVM: none.
    fn MXNetFuncListGlobalNames(out_size: *mut c_int, out_array: *mut *mut *const c_char) {
        put(out_size, 0, "out_size")?;
        put(out_array, std::ptr::null_mut(), "out_array")
    }

    /// A function of TVM by its name: null, as there are none.
    fn MXNetFuncGetGlobal(name: *const c_char, out: *mut *mut c_void) {
        text(name, "name")?;
        put(out, std::ptr::null_mut(), "out")
    }
}

absent! {
    "training and automatic differentiation":
        MXAutogradBackward MXAutogradBackwardEx MXAutogradComputeGradient MXAutogradGetSymbol
        MXCustomFunctionRecord MXExecutorBackward MXExecutorBackwardEx MXNDArraySetGradState
        MXSymbolGrad;
    "distributed training: stores of keys and values, and servers of parameters":
        MXInitPSEnv MXKVStoreBarrier MXKVStoreBroadcast MXKVStoreBroadcastEx MXKVStoreCreate
        MXKVStoreFree MXKVStoreGetGroupSize MXKVStoreGetNumDeadNode MXKVStoreGetRank
        MXKVStoreGetType MXKVStoreInit MXKVStoreInitEx MXKVStorePull MXKVStorePullEx
        MXKVStorePullRowSparse MXKVStorePullRowSparseEx MXKVStorePullWithSparse MXKVStorePullWithSparseEx MXKVStorePush
        MXKVStorePushEx MXKVStorePushPull MXKVStorePushPullEx MXKVStoreRunServer
        MXKVStoreSendCommmandToServers MXKVStoreSetBarrierBeforeExit
        MXKVStoreSetGradientCompression MXKVStoreSetUpdater MXKVStoreSetUpdaterEx;
    "compiling CUDA source at run time":
        MXRtcCreate MXRtcCudaKernelCall MXRtcCudaKernelCreate MXRtcCudaKernelFree
        MXRtcCudaModuleCreate MXRtcCudaModuleFree MXRtcFree MXRtcPush;
    "loading libraries of C++ classes, and functions of TVM":
        MXLoadLib MXNetFuncCall MXNetFuncFree MXNetObjectFree MXTVMBridge;
    "C++ variables of MXNet's engine; MXEnginePushSyncND and MXEnginePushAsyncND take arrays":
        MXEnginePushAsync MXEnginePushSync;
    "quantizing symbols and lowering their precision":
        MXQuantizeSymbol MXReducePrecisionSymbol MXSetCalibTableToQuantizedSymbol;
    "partitioning symbols for other backends":
        MXBuildSubgraphByOpNames MXGenAtomicSymbolFromSymbol MXRemoveSubgraphPropertyOpNames
        MXRemoveSubgraphPropertyOpNamesV2 MXSetSubgraphPropertyOpNames MXSetSubgraphPropertyOpNamesV2;
    "passes over graphs of NNVM":
        NNAddControlDeps NNGraphApplyPasses NNGraphCreate NNGraphFree NNGraphGetJSONAttr
        NNGraphGetSymbol NNGraphSetJSONAttr NNGraphSetNodeEntryListAttr_;
    "functions of MXNet's time before operators; MXImperativeInvoke calls operators by name":
        MXFuncDescribe MXFuncGetInfo MXFuncInvoke MXFuncInvokeEx;
    "the variables of a symbol as handles; NNSymbolListInputNames has their names":
        NNSymbolListInputVariables;
    "hooks on the operators of a callable graph; MXExecutorSetMonitorCallback has them":
        MXCachedOpRegisterOpHook;
}
