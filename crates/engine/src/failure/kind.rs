//! The kinds of failure: one row each, from which everything that tells kinds apart is derived.

/// Declares [`FailureKind`]: kind, its name, its code, the Python class, the built-in Python class
/// that it derives from besides `MXNetError`, and the class that MXNet's C interface names in
/// messages.
macro_rules! failure_kinds {
    ($($(#[$doc:meta])+ $kind:ident: $name:literal, $code:literal, $class:literal, $built_in:literal, $c_class:literal;)+) => {
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

            /// The code that texts of such errors end with, such as `MX-SHAPE`. `mxrt explain CODE`
            /// prints its page.
            pub const fn code(self) -> &'static str {
                match self {
                    $(FailureKind::$kind => $code,)+
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

            /// The class that the front ends of MXNet's C interface make of an error. It is that of
            /// MXNet, whose programs catch `MXNetError`, of which a `ValueError` would be none.
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
    Operator: "operator", "MX-OPERATOR", "MXNetError", "RuntimeError", "MXNetError";
    /// An argument has a value that is not allowed.
    Value: "value", "MX-VALUE", "MXNetValueError", "ValueError", "MXNetError";
    /// An argument has the wrong type.
    Type: "type", "MX-TYPE", "MXNetTypeError", "TypeError", "MXNetError";
    /// Shapes do not fit.
    Shape: "shape", "MX-SHAPE", "MXNetShapeError", "ValueError", "MXNetError";
    /// An index is out of range.
    Index: "index", "MX-INDEX", "MXNetIndexError", "IndexError", "MXNetError";
    /// The feature does not exist.
    NotImplemented: "not_implemented", "MX-NONE", "MXNetNotImplementedError", "NotImplementedError", "NotImplementedError";
    /// The operation belongs to training.
    Training: "training", "MX-TRAINING", "TrainingNotSupportedError", "NotImplementedError", "NotImplementedError";
    /// No memory.
    Memory: "memory", "MX-MEMORY", "MXNetMemoryError", "MemoryError", "MXNetError";
    /// The operator panicked.
    Panic: "panic", "MX-DEFECT", "InternalError", "RuntimeError", "InternalError";
    /// An asynchronous operator dropped its completion.
    NotCompleted: "not_completed", "MX-DEFECT", "InternalError", "RuntimeError", "InternalError";
    /// The engine was closed before the operator was pushed.
    Shutdown: "shutdown", "MX-END", "MXNetShutdownError", "RuntimeError", "MXNetError";
    /// The deadline passed first.
    Deadline: "deadline", "MX-TIME", "MXNetTimeoutError", "TimeoutError", "MXNetError";
    /// Cancelled by the caller.
    Cancelled: "cancelled", "MX-CANCEL", "MXNetCancelledError", "RuntimeError", "MXNetError";
    /// Input data is damaged.
    Data: "data", "MX-DATA", "MXNetDataError", "ValueError", "MXNetError";
    /// A file, or the folder it is in, is not there.
    FileNotFound: "file_not_found", "MX-FILE", "MXNetFileNotFoundError", "FileNotFoundError", "MXNetError";
    /// The device reported an error.
    Device: "device", "MX-DEVICE", "MXNetDeviceError", "RuntimeError", "MXNetError";
}

/// The start of a code in a text: one before it tells the end of an error from other brackets.
const OPENING: &str = " [MX-";

impl FailureKind {
    /// Returns the text of an error: the message, and the code in brackets. Codes of errors that the
    /// message quotes are left out, so that a text has one code.
    pub fn coded(self, message: &str) -> String {
        let (mut text, mut rest) = (String::with_capacity(message.len() + 16), message);
        while let Some(start) = rest.find(OPENING) {
            let (before, code) = (&rest[..start], &rest[start + OPENING.len()..]);
            let length = code.bytes().take_while(u8::is_ascii_uppercase).count();
            text.push_str(before);
            if length > 0 && code[length..].starts_with(']') {
                rest = &code[length + 1..];
            } else {
                text.push_str(OPENING);
                rest = code;
            }
        }
        text.push_str(rest);
        if !text.is_empty() {
            text.push(' ');
        }
        text.push('[');
        text.push_str(self.code());
        text.push(']');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_code_of_its_own_error_alone() {
        let coded = |message| FailureKind::Data.coded(message);
        assert_eq!(coded("it is cut short"), "it is cut short [MX-DATA]");
        assert_eq!(coded(""), "[MX-DATA]");
        assert_eq!(coded("'a': shapes differ [MX-SHAPE]; write it"), "'a': shapes differ; write it [MX-DATA]");
        assert_eq!(coded("a [MX-SHAPE] [MX-VALUE]"), "a [MX-DATA]");
        assert_eq!(coded("'x [MX-'"), "'x [MX-' [MX-DATA]");
        assert_eq!(coded("é [MX-É] [MX-a]"), "é [MX-É] [MX-a] [MX-DATA]");
    }
}
