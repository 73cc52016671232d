//! Errors that prevent a server from starting.

use mxrt_engine::OpError;
use std::fmt;
use std::io;

/// Error that prevents a server from starting.
#[derive(Debug)]
pub enum StartError {
    /// Another program listens on the address. The fields are the address, and the option that
    /// changes it.
    InUse(String, &'static str),
    /// The server cannot listen on the address, for the given reason.
    Listen(String, io::Error),
    /// Settings contradict each other.
    Settings(String),
    /// A file of certificates, keys or tokens cannot be used.
    Files(String),
    /// A model cannot be loaded.
    Models(OpError),
    /// Threads of the server cannot be started.
    Threads(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::InUse(address, option) => write!(
                f,
                "cannot listen on {address}: another program does; name another port ({option}), 0 for a free one"
            ),
            StartError::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            StartError::Settings(message) | StartError::Files(message) => f.write_str(message),
            StartError::Models(error) => f.write_str(&error.message),
            StartError::Threads(error) => write!(f, "cannot start the threads of the server: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
