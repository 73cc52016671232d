//! Begins to share packed weights with other processes.

use crate::devices::DeviceSettings;
use std::error::Error;
use std::os::unix::fs::MetadataExt;

/// Shares packed weights by files of at most `most` bytes in the folder of caches.
pub(super) fn begin(devices: &DeviceSettings, most: usize) -> Result<(), Box<dyn Error>> {
    let folder = devices.cache.clone().or_else(mxrt_engine::cache::user_folder);
    let folder = folder.ok_or("there is neither a home folder nor XDG_CACHE_HOME: name a folder by MXRT_CACHE_DIR")?;
    Ok(mxrt_graph::share_weights(&folder, most as u64, &build()?)?)
}

/// Names this build of the library, because another one of the same version may pack differently:
/// the size and the time of the file that has this code.
fn build() -> Result<String, Box<dyn Error>> {
    let maps = std::fs::read_to_string("/proc/self/maps")
        .map_err(|error| format!("the file of this library is looked for in /proc/self/maps: {error}"))?;
    let file = maps.lines().find_map(file_with(build as *const () as usize));
    let about = std::fs::metadata(file.ok_or("no file has the code of this library")?)?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!("{version} {} {}.{:09}", about.len(), about.mtime(), about.mtime_nsec()))
}

/// Finds the file of an address in a line of `/proc/self/maps`: range, rights, offset, device,
/// inode, path.
fn file_with(address: usize) -> impl Fn(&str) -> Option<&str> {
    move |line| {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let path = rest.splitn(5, ' ').nth(4)?.trim_start();
        (number(begin)?..number(end)?).contains(&address).then_some(path)
    }
}
