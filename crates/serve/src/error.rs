//! Why a server could not start.

use mxrt_engine::OpError;
use std::fmt;
use std::io;

/// Why a server could not start.
#[derive(Debug)]
pub enum StartError {
    /// Another program listens there: the address, and the option that names another one.
    InUse(String, &'static str),
    /// It cannot listen there: the address, and why.
    Listen(String, io::Error),
    /// Settings that do not go together.
    Settings(String),
    /// A file of certificates, keys or tokens is not as it should be.
    Files(String),
    /// A model cannot be loaded.
    Models(OpError),
    /// Its threads cannot be made.
    Threads(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::InUse(address, option) => write!(
                f,
                "cannot listen at {address}: another program does; name another port ({option}), 0 for a free one"
            ),
            StartError::Listen(address, error) => write!(f, "cannot listen at {address}: {error}"),
            StartError::Settings(message) | StartError::Files(message) => f.write_str(message),
            StartError::Models(error) => f.write_str(&error.message),
            StartError::Threads(error) => write!(f, "cannot start the threads of the server: {error}"),
        }
    }
}

impl std::error::Error for StartError {}
