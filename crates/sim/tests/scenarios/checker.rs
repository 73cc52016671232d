//! Checks the checker with calls that were written by hand: it finds every missing order, and
//! reports none that is present.

use mxrt_engine::device::{DevicePtr, Tag, TagAccess};
use mxrt_engine::{DeviceId, DeviceKind};
use mxrt_sim::{Knows, LogEntry, check};
use std::sync::Arc;

const VAR: u64 = 7;

/// A piece of work of the op with this number that uses the variable.
fn work(stream: usize, op: u64, write: bool) -> LogEntry {
    let accesses = vec![TagAccess { var: VAR, memory: None, write }];
    let device = DeviceId::new(DeviceKind::SIM, 0);
    LogEntry::Work {
        stream,
        tag: Arc::new(Tag { op, name: format!("op{op}").into(), device, accesses, behind_all: false }),
    }
}

fn record(stream: usize, record: u64, op: u64) -> LogEntry {
    LogEntry::Record { stream, record, op }
}

fn wait(stream: usize, record: u64, op: u64) -> LogEntry {
    LogEntry::Wait { stream, record, op }
}

#[track_caller]
fn finds(log: &[LogEntry], expected: &[&str]) {
    let found = check::check(log).violations;
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_write_beside_readers_of_other_streams_is_found() {
    let (first, second) = (work(0, 1, false), work(1, 2, false));
    let unordered =
        ["op3 (op 3, stream 2) writes variable 7, which op1", "op3 (op 3, stream 2) writes variable 7, which op2"];
    finds(&[first.clone(), second.clone(), work(2, 3, true)], &unordered);
    let behind_first = [first.clone(), record(0, 1, 1), second.clone(), wait(2, 1, 3), work(2, 3, true)];
    finds(&behind_first, &unordered[1..]);
    let behind_both = [first, record(0, 1, 1), second, record(1, 2, 2), wait(2, 1, 3), wait(2, 2, 3), work(2, 3, true)];
    finds(&behind_both, &[]);
}

#[test]
fn a_read_or_write_beside_a_writer_is_found() {
    for write in [false, true] {
        let verb = if write { "op2 (op 2, stream 1) writes" } else { "op2 (op 2, stream 1) reads" };
        finds(&[work(0, 1, true), work(1, 2, write)], &[verb]);
        finds(&[work(0, 1, true), record(0, 1, 1), wait(1, 1, 2), work(1, 2, write)], &[]);
        // The stream's own order is one.
        finds(&[work(0, 1, true), work(0, 2, write)], &[]);
    }
}

#[test]
fn readers_need_no_order_and_a_wait_among_them_is_found() {
    finds(&[work(0, 1, false), work(1, 2, false)], &[]);
    let waits = [work(0, 1, false), record(0, 1, 1), wait(1, 1, 2), work(1, 2, false)];
    finds(&waits, &["op2 waits for op1, with which it shares nothing"]);
}

#[test]
fn a_record_comes_after_what_was_submitted_before_it_only() {
    let late = [record(0, 1, 1), work(0, 1, true), wait(1, 1, 2), work(1, 2, true)];
    finds(&late, &["nothing orders the two"]);
    let of_another_stream = [work(0, 1, true), record(2, 1, 1), wait(1, 1, 2), work(1, 2, true)];
    finds(&of_another_stream, &["nothing orders the two"]);
}

#[test]
fn what_the_host_knows_orders_what_it_does_afterwards() {
    let host = |write| LogEntry::Host { name: "host".into(), accesses: vec![(VAR, write)] };
    let known = LogEntry::Known { record: 1, how: Knows::Called };
    finds(&[work(0, 1, true), record(0, 1, 1), host(false)], &["host on the host reads variable 7"]);
    finds(&[work(0, 1, false), record(0, 1, 1), host(true)], &["host on the host writes variable 7"]);
    finds(&[work(0, 1, true), record(0, 1, 1), known.clone(), host(true)], &[]);
    finds(&[work(0, 1, true), record(0, 1, 1), known, work(1, 2, true)], &[]);
}

const MEMORY: DevicePtr = DevicePtr(4096);

/// A piece of work that writes memory on a device.
fn fill(stream: usize, op: u64) -> LogEntry {
    let accesses = vec![TagAccess { var: op, memory: Some(MEMORY), write: true }];
    let device = DeviceId::new(DeviceKind::SIM, 0);
    let tag = Arc::new(Tag { op, name: format!("op{op}").into(), device, accesses, behind_all: false });
    LogEntry::Work { stream, tag }
}

#[test]
fn memory_that_is_given_back_while_a_stream_uses_it_is_found() {
    let free = LogEntry::Free { ptr: MEMORY };
    let known = LogEntry::Known { record: 1, how: Knows::Called };
    finds(&[fill(0, 1), record(0, 1, 1), free.clone()], &["was given back while op1 (op 1, stream 0) may still"]);
    finds(&[fill(0, 1), record(0, 1, 1), known.clone(), free.clone()], &[]);
    // Other work on the same memory, of which the host knows nothing.
    finds(&[fill(0, 1), record(0, 1, 1), known.clone(), fill(0, 2), free.clone()], &["while op2"]);
    // The next owner of the memory has nothing to do with the last one.
    finds(&[fill(0, 1), record(0, 1, 1), known, free, fill(1, 2)], &[]);
}

#[test]
fn memory_that_does_not_exist_is_found() {
    let LogEntry::Work { tag, .. } = fill(0, 1) else { unreachable!("it is work") };
    finds(&[LogEntry::BadMemory { tag, ptr: MEMORY }], &["op1 uses memory"]);
}

#[test]
fn a_host_that_waits_where_no_thread_asked_it_to_is_found() {
    let waited = LogEntry::Known { record: 1, how: Knows::Waited };
    let before = [work(0, 1, true), record(0, 1, 1)];
    let with = |middle: &[LogEntry]| [&before[..], middle].concat();
    finds(&with(&[LogEntry::MayWait(false), waited.clone()]), &["the host waits for record 1"]);
    finds(&with(&[LogEntry::MayWait(true), waited.clone()]), &[]);
    finds(&with(std::slice::from_ref(&waited)), &[]);
    finds(&with(&[LogEntry::MayWait(false), LogEntry::Known { record: 1, how: Knows::Called }]), &[]);
    assert_eq!(check::check(&with(&[LogEntry::MayWait(true), waited])).host_waits, 1);
}
