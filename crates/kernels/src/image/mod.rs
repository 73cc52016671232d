//! Images whose pixels have their channels side by side: `(height, width, channels)`.

pub mod border;
pub mod color;
pub mod layout;
pub mod resize;
