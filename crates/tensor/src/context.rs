//! Where an array lives.

use std::fmt;

/// Kind of device, with MXNet's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum DeviceType {
    /// host memory
    Cpu = 1,
    /// CUDA device
    Gpu = 2,
    /// page-locked host memory
    CpuPinned = 3,
    /// host memory shared between processes
    CpuShared = 5,
}

/// A device: type and number. `cpu(i)` are queues over one pool of threads and one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    /// kind of device
    pub device_type: DeviceType,
    /// number of the device among its kind
    pub device_id: i32,
}

impl Context {
    /// `cpu(id)`
    pub const fn cpu(device_id: i32) -> Context {
        Context { device_type: DeviceType::Cpu, device_id }
    }

    /// The name MXNet prints for the device type.
    pub fn type_name(self) -> &'static str {
        match self.device_type {
            DeviceType::Cpu => "cpu",
            DeviceType::Gpu => "gpu",
            DeviceType::CpuPinned => "cpu_pinned",
            DeviceType::CpuShared => "cpu_shared",
        }
    }

    /// Parses `cpu`, `cpu(1)`, `gpu(0)` and so on, as the `ctx` attribute of creation operators spells it.
    pub fn parse(text: &str) -> Option<Context> {
        let (name, id) = match text.split_once('(') {
            None => (text, 0),
            Some((name, rest)) => (name, rest.strip_suffix(')')?.trim().parse().ok()?),
        };
        let device_type = match name {
            "cpu" => DeviceType::Cpu,
            "gpu" => DeviceType::Gpu,
            "cpu_pinned" => DeviceType::CpuPinned,
            "cpu_shared" => DeviceType::CpuShared,
            _ => return None,
        };
        Some(Context { device_type, device_id: id })
    }
}

impl Default for Context {
    fn default() -> Self {
        Context::cpu(0)
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.type_name(), self.device_id)
    }
}
