//! The kinds of failure: one row each, from which everything that tells kinds apart is derived.

/// Declares [`FailureKind`]: kind, its name, the Python class, the built-in Python class that it
/// derives from besides `MXNetError`, and the class that MXNet's C interface names in messages.
macro_rules! failure_kinds {
    ($($(#[$doc:meta])+ $kind:ident: $name:literal, $class:literal, $built_in:literal, $c_class:literal;)+) => {
        /// Kinds of failures; the borders map each to an exception class.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[non_exhaustive]
        pub enum FailureKind {
            $($(#[$doc])+ $kind,)+
        }

        impl FailureKind {
            /// All kinds, in the order of their declaration.
            pub const ALL: &[FailureKind] = &[$(FailureKind::$kind,)+];

            /// The name of the kind in Python: the attribute `kind` of an exception.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FailureKind::$kind => $name,)+
                }
            }

            /// The class of `mxrt.base` that Python raises.
            pub const fn python_class(self) -> &'static str {
                match self {
                    $(FailureKind::$kind => $class,)+
                }
            }

            /// The built-in Python class that instances of [`python_class`](Self::python_class)
            /// are.
            pub const fn python_base(self) -> &'static str {
                match self {
                    $(FailureKind::$kind => $built_in,)+
                }
            }

            /// The class that the front ends of MXNet's C interface know.
            pub const fn c_class(self) -> &'static str {
                match self {
                    $(FailureKind::$kind => $c_class,)+
                }
            }
        }
    };
}

failure_kinds! {
    /// The operator itself failed.
    Operator: "operator", "MXNetError", "RuntimeError", "MXNetError";
    /// An argument has a value that is not allowed.
    Value: "value", "MXNetValueError", "ValueError", "ValueError";
    /// An argument has the wrong type.
    Type: "type", "MXNetTypeError", "TypeError", "TypeError";
    /// Shapes do not fit.
    Shape: "shape", "MXNetShapeError", "ValueError", "MXNetError";
    /// An index is out of range.
    Index: "index", "MXNetIndexError", "IndexError", "IndexError";
    /// The feature does not exist.
    NotImplemented: "not_implemented", "MXNetNotImplementedError", "NotImplementedError", "NotImplementedError";
    /// The operation belongs to training.
    Training: "training", "TrainingNotSupportedError", "NotImplementedError", "NotImplementedError";
    /// No memory.
    Memory: "memory", "MXNetMemoryError", "MemoryError", "MXNetError";
    /// The operator panicked.
    Panic: "panic", "InternalError", "RuntimeError", "InternalError";
    /// An asynchronous operator dropped its completion.
    NotCompleted: "not_completed", "InternalError", "RuntimeError", "InternalError";
    /// The engine was closed before the operator was pushed.
    Shutdown: "shutdown", "MXNetShutdownError", "RuntimeError", "MXNetError";
    /// The deadline passed first.
    Deadline: "deadline", "MXNetTimeoutError", "TimeoutError", "MXNetError";
    /// Cancelled by the caller.
    Cancelled: "cancelled", "MXNetCancelledError", "RuntimeError", "MXNetError";
    /// Input data is damaged.
    Data: "data", "MXNetDataError", "ValueError", "MXNetError";
    /// A file, or the folder it is in, is not there.
    FileNotFound: "file_not_found", "MXNetFileNotFoundError", "FileNotFoundError", "MXNetError";
    /// The device reported an error.
    Device: "device", "MXNetDeviceError", "RuntimeError", "MXNetError";
}
