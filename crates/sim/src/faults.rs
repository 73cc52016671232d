//! Calls that fail on purpose.

use mxrt_engine::device::{DeviceError, ErrorClass};

/// Calls that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// Launching a kernel.
    Launch,
    /// Submitting a copy.
    Copy,
    /// Recording an event.
    Record,
    /// Making a stream wait.
    Wait,
    /// Asking whether an event is complete.
    Query,
    /// Waiting for an event.
    HostWait,
    /// Allocating memory.
    Alloc,
    /// Making a stream.
    Stream,
    /// The execution of a kernel: no thread is notified before the next call.
    Execute,
}

/// One failure to come.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Number of the device.
    pub device: usize,
    /// The calls that are counted.
    pub call: Call,
    /// How many of them succeed first.
    pub after: u64,
    /// The driver's number of the error; see [`classify`].
    pub code: i32,
}

/// The meaning of an error number: the numbers of CUDA.
pub fn classify(code: i32) -> DeviceError {
    const LOST: [i32; 15] = [214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 999];
    let (class, message) = match code {
        2 => (ErrorClass::OutOfMemory, "out of memory".to_owned()),
        code if LOST.contains(&code) => (ErrorClass::Lost, format!("the context is lost by error {code}")),
        1 => (ErrorClass::Recoverable, "invalid value".to_owned()),
        code => (ErrorClass::Recoverable, format!("error {code}")),
    };
    DeviceError::new(class, code, message)
}

/// The faults that have not happened yet.
#[derive(Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// Counts a call; the error it returns, if it does.
    pub fn next(&mut self, device: usize, call: Call) -> Option<DeviceError> {
        let mut hit = None;
        for (i, fault) in self.0.iter_mut().enumerate().filter(|(_, f)| f.device == device && f.call == call) {
            if fault.after == 0 {
                hit = hit.or(Some(i));
            } else {
                fault.after -= 1;
            }
        }
        hit.map(|i| classify(self.0.remove(i).code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_hit_the_call_and_the_device_that_they_are_for() {
        let mut faults = Faults::default();
        faults.add(Fault { device: 1, call: Call::Copy, after: 1, code: 2 });
        for (device, call) in [(0, Call::Copy), (1, Call::Launch), (1, Call::Copy), (0, Call::Copy)] {
            assert_eq!(faults.next(device, call).map(|error| error.code), None, "{device} {call:?}");
        }
        assert_eq!(faults.next(1, Call::Copy).map(|error| error.code), Some(2));
        assert!(faults.next(1, Call::Copy).is_none(), "once");
    }
}
