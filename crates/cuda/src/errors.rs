//! The meaning of the driver's error numbers. The one list of them.

use mxrt_engine::device::{DeviceError, ErrorClass};

/// "Not ready": the only answer of `cuEventQuery` that is no error.
pub(crate) const NOT_READY: i32 = 600;
/// A call from where calls are forbidden.
pub(crate) const NOT_PERMITTED: i32 = 800;
/// The driver was used without having been initialised, as in a forked child.
pub(crate) const NOT_INITIALIZED: i32 = 3;
/// The default stream would take part in the capture of a stream that it waits for.
pub(crate) const CAPTURE_IMPLICIT: i32 = 906;

/// Number, name, and the class where it is not [`ErrorClass::Recoverable`].
const ERRORS: &[(i32, &str, Option<ErrorClass>)] = &[
    (1, "CUDA_ERROR_INVALID_VALUE", None),
    (2, "CUDA_ERROR_OUT_OF_MEMORY", Some(ErrorClass::OutOfMemory)),
    (3, "CUDA_ERROR_NOT_INITIALIZED", None),
    // The process ends: nothing runs on any device any more.
    (4, "CUDA_ERROR_DEINITIALIZED", Some(ErrorClass::Lost)),
    (34, "CUDA_ERROR_STUB_LIBRARY", None),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE", None),
    (100, "CUDA_ERROR_NO_DEVICE", None),
    (101, "CUDA_ERROR_INVALID_DEVICE", None),
    (200, "CUDA_ERROR_INVALID_IMAGE", None),
    (201, "CUDA_ERROR_INVALID_CONTEXT", None),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU", None),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE", Some(ErrorClass::Lost)),
    (218, "CUDA_ERROR_INVALID_PTX", None),
    (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", Some(ErrorClass::Lost)),
    (226, "CUDA_ERROR_CONTAINED", Some(ErrorClass::Lost)),
    (304, "CUDA_ERROR_OPERATING_SYSTEM", None),
    (400, "CUDA_ERROR_INVALID_HANDLE", None),
    (500, "CUDA_ERROR_NOT_FOUND", None),
    (600, "CUDA_ERROR_NOT_READY", None),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS", Some(ErrorClass::Lost)),
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", None),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT", Some(ErrorClass::Lost)),
    (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", None),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", Some(ErrorClass::Lost)),
    (710, "CUDA_ERROR_ASSERT", Some(ErrorClass::Lost)),
    (714, "CUDA_ERROR_HARDWARE_STACK_ERROR", Some(ErrorClass::Lost)),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", Some(ErrorClass::Lost)),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS", Some(ErrorClass::Lost)),
    (717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", Some(ErrorClass::Lost)),
    (718, "CUDA_ERROR_INVALID_PC", Some(ErrorClass::Lost)),
    (719, "CUDA_ERROR_LAUNCH_FAILED", Some(ErrorClass::Lost)),
    (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", Some(ErrorClass::Lost)),
    (800, "CUDA_ERROR_NOT_PERMITTED", None),
    (801, "CUDA_ERROR_NOT_SUPPORTED", None),
    (802, "CUDA_ERROR_SYSTEM_NOT_READY", None),
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", None),
    (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", None),
    (805, "CUDA_ERROR_MPS_CONNECTION_FAILED", None),
    (806, "CUDA_ERROR_MPS_RPC_FAILURE", None),
    (807, "CUDA_ERROR_MPS_SERVER_NOT_READY", None),
    (808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", None),
    (809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", None),
    // The server of the multi-process service has ended this process' work for good.
    (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", Some(ErrorClass::Lost)),
    (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", None),
    (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", None),
    (902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", None),
    (903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", None),
    (904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", None),
    (905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", None),
    (906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", None),
    (907, "CUDA_ERROR_CAPTURED_EVENT", None),
    (908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", None),
    // The stream belongs to a part of the GPU that was given back.
    (917, "CUDA_ERROR_STREAM_DETACHED", None),
    (999, "CUDA_ERROR_UNKNOWN", Some(ErrorClass::Lost)),
];

/// The driver's name of an error; `None` for a number that this list does not have.
pub fn error_name(code: i32) -> Option<&'static str> {
    ERRORS.iter().find(|(number, ..)| *number == code).map(|(_, name, _)| *name)
}

/// The error of a call that returned this number. A number that is not in the list is recoverable:
/// a driver that cannot continue says so again at the next call.
pub fn classify(code: i32) -> DeviceError {
    let row = ERRORS.iter().find(|(number, ..)| *number == code);
    let class = row.and_then(|(_, _, class)| *class).unwrap_or(ErrorClass::Recoverable);
    DeviceError::new(class, code, words(code))
}

/// A number in words.
pub(crate) fn words(code: i32) -> String {
    match error_name(code) {
        Some(name) => format!("CUDA error {code}, {name}"),
        None => format!("CUDA error {code}"),
    }
}

/// A result of the driver.
pub(crate) fn check(code: i32) -> Result<(), DeviceError> {
    if code == 0 { Ok(()) } else { Err(classify(code)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulated_device_gives_numbers_the_same_meaning() {
        // The end of the driver is not simulated.
        for code in (1..1200).filter(|code| ![4, 709].contains(code)) {
            assert_eq!(classify(code).class, mxrt_sim::classify(code).class, "{code}");
        }
    }

    #[test]
    fn a_number_of_a_newer_driver_is_an_error_without_a_name() {
        let error = classify(12345);
        assert_eq!((error.class, error.code), (ErrorClass::Recoverable, 12345));
        assert_eq!(error.message, "CUDA error 12345");
    }
}
