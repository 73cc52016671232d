//! Memory of a device that its owner can recompute: folded parameters of plans. It is released
//! before an operator fails for lack of memory, and when the cache is emptied.

use super::open::OpenDevice;
use crate::op::spec::DeviceId;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// An owner of such memory.
pub trait SpareMemory: Send + Sync {
    /// Frees the device's memory that no op uses. Called from ops of the engine, under no lock.
    fn give_up(&self, device: DeviceId);
}

/// The owners of a device's.
#[derive(Default)]
pub(super) struct Spares(Mutex<Vec<Weak<dyn SpareMemory>>>);

impl OpenDevice {
    /// Names an owner, for as long as it lives.
    pub fn add_spare(&self, owner: &Arc<impl SpareMemory + 'static>) {
        let owner: Weak<dyn SpareMemory> = Arc::downgrade(owner) as _;
        let mut owners = self.spares.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&owner));
        owners.push(owner);
    }

    pub(super) fn give_up_spares(&self) {
        self.end_captured_uses();
        let owners = self.spares.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        owners.iter().filter_map(Weak::upgrade).for_each(|owner| owner.give_up(self.id));
    }
}
