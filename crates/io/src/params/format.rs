//! Numbers of the file format.

/// First eight bytes of a list file.
pub(super) const LIST_MAGIC: u64 = 0x112;
/// A record with a storage type, shapes in the older way.
pub(super) const RECORD_V2: u32 = 0xF993_FAC9;
/// Magic number of V3: the form of V2, written under np-shape.
pub(super) const RECORD_V3: u32 = 0xF993_FACA;
/// A record without a storage type. Older ones have no magic number: they begin with the number of
/// axes.
pub(super) const RECORD_V1: u32 = 0xF993_FAC8;

/// Bytes of the shortest possible record: a V2 record whose shape has no axes.
pub(super) const SHORTEST_RECORD: u64 = 4;
