//! Messages and descriptors that `tests/protocol_files.rs` generates.

pub(super) mod inference { include!("inference.rs"); }
pub(super) mod health { include!("health.rs"); }
pub(super) mod reflection { include!("reflection.rs"); }

/// File of the protocol, as reflection describes it.
pub(super) struct ProtocolFile {
    pub(super) name: &'static str,
    pub(super) services: &'static [&'static str],
    pub(super) imports: &'static [&'static str],
    /// names of the messages and services that it declares
    pub(super) symbols: &'static [&'static str],
    /// serialized `google.protobuf.FileDescriptorProto`
    pub(super) descriptor: &'static [u8],
}

pub(super) static FILES: &[ProtocolFile] = include!("files.rs");
