//! The context of an array: the device that holds it.

use mxrt_engine::{DeviceId, DeviceKind};
use std::borrow::Cow;
use std::fmt;

/// Kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceType {
    /// host memory
    Cpu,
    /// page-locked host memory
    CpuPinned,
    /// host memory shared between processes
    CpuShared,
    /// memory of a device, of the kind with this name
    Device(DeviceKind),
}

/// DLPack's number for devices that have none of their own; MXNet has no such devices.
const EXTENSION: i32 = 12;

impl DeviceType {
    /// MXNet's number.
    pub fn code(self) -> i32 {
        match self {
            DeviceType::Cpu => 1,
            DeviceType::Device(DeviceKind::GPU) => 2,
            DeviceType::CpuPinned => 3,
            DeviceType::CpuShared => 5,
            DeviceType::Device(_) => EXTENSION,
        }
    }

    /// The name, as in `cpu(0)`.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            DeviceType::Cpu => "cpu".into(),
            DeviceType::CpuPinned => "cpu_pinned".into(),
            DeviceType::CpuShared => "cpu_shared".into(),
            DeviceType::Device(kind) => kind.to_string().into(),
        }
    }
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

    /// The memory of a device.
    pub fn on(device: DeviceId) -> Context {
        match device.is_cpu() {
            true => Context::cpu(device.index().into()),
            false => Context { device_type: DeviceType::Device(device.kind()), device_id: device.index().into() },
        }
    }

    /// The device whose memory holds the arrays; `None`: the host's. A number that no device can
    /// have becomes the largest.
    pub fn device(self) -> Option<DeviceId> {
        match self.device_type {
            DeviceType::Device(kind) => Some(DeviceId::new(kind, u16::try_from(self.device_id).unwrap_or(u16::MAX))),
            _ => None,
        }
    }

    /// Parses `cpu`, `cpu(1)`, `gpu(0)` and so on, as the `ctx` attribute of creation operators
    /// spells it. What is no kind of host memory is the name of a device; whether there is such a
    /// device turns out when it is used.
    pub fn parse(text: &str) -> Option<Context> {
        let (name, id) = match text.split_once('(') {
            None => (text, 0),
            Some((name, rest)) => (name, rest.strip_suffix(')')?.trim().parse().ok()?),
        };
        let device_type = match name {
            "cpu" => DeviceType::Cpu,
            "cpu_pinned" => DeviceType::CpuPinned,
            "cpu_shared" => DeviceType::CpuShared,
            name if (1..=6).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase()) => {
                DeviceType::Device(DeviceKind::named(name))
            }
            _ => return None,
        };
        Some(Context { device_type, device_id: id })
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Default for Context {
    fn default() -> Self {
        Context::cpu(0)
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.device_type, self.device_id)
    }
}
