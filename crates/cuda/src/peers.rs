//! GPUs that reach each other's memory. Copies between others work as well, by way of the host.

use crate::api::Api;
use crate::context::{Context, Current};
use mxrt_engine::ForkSafeMutex;
use std::ffi::c_int;

/// A GPU with a context: its number, as the driver counts.
#[derive(Clone, Copy)]
struct Opened {
    ordinal: c_int,
    context: Context,
}

/// Pairs of peers that were opened so far.
static OPENED: ForkSafeMutex<Vec<Opened>> = ForkSafeMutex::new(Vec::new());

/// Lets a GPU that was just opened, and those that were before, reach each other's memory where the
/// hardware can. Where the driver refuses, nothing is lost but time.
pub(crate) fn introduce(api: &Api, ordinal: c_int, context: Context) {
    let new = Opened { ordinal, context };
    let mut opened = OPENED.lock();
    for other in opened.iter() {
        enable(api, new, *other);
        enable(api, *other, new);
    }
    opened.push(new);
}

/// Lets `gpu` reach the memory of `peer`.
fn enable(api: &Api, gpu: Opened, peer: Opened) {
    let mut reaches = 0;
    // SAFETY: one number is written.
    let asked = unsafe { (api.cuDeviceCanAccessPeer)(&mut reaches, gpu.ordinal, peer.ordinal) };
    if asked == 0
        && reaches != 0
        && let Ok(_current) = Current::enter(api, gpu.context)
    {
        // SAFETY: contexts live as long as the process. Another library may have done it before.
        let _ = unsafe { (api.cuCtxEnablePeerAccess)(peer.context.0, 0) };
    }
}
