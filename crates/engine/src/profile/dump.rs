//! A description of the engine's activity as text, for finding a stall: the running and queued ops,
//! and each waiting thread with the variable it waits for and since when.

use crate::engine::Engine;
use crate::op::block::Mode;
use crate::process::fork;
use crate::process::running::Seen;
use crate::process::slot;
use crate::process::start::start_thread;
use crate::sync::clock::{self, Scale};
use crate::var::Var;
use std::fmt::Write;

/// Lines of each sort that are written out; more are counted.
const MANY: usize = 20;

impl Engine {
    /// Describes what runs, what is queued, and which threads wait for what, since when. Takes no
    /// longer than a few locks and never waits for an op, so it works while the engine hangs.
    pub fn dump(&'static self) -> String {
        clock::start();
        let scale = Scale::measure();
        let mut text = String::new();
        self.without_fork(|| {
            self.describe_pool(&mut text);
            describe_running(&mut text, scale);
            self.describe_queue(&mut text);
            self.describe_waiters(&mut text, scale);
        });
        text
    }

    /// Whether a thread computes, waits, or could.
    fn has_work(&'static self) -> bool {
        self.without_fork(|| {
            let queued = self.sched.summary().queued > 0;
            let waiting = !self.waiters.list().is_empty() || self.epochs.threads_waiting() > 0;
            queued || waiting || self.sched.tokens.free() < self.cores()
        })
    }

    fn describe_pool(&self, text: &mut String) {
        let pool = self.sched.summary();
        let _ = writeln!(
            text,
            "{}: {} of {} cores in use, {} workers ({} asleep), {} operators queued{}",
            self.kind(),
            self.cores() - self.sched.tokens.free(),
            self.cores(),
            pool.workers,
            pool.asleep,
            pool.queued,
            if self.closed.load(std::sync::atomic::Ordering::Relaxed) { ", closed" } else { "" },
        );
    }

    fn describe_queue(&self, text: &mut String) {
        let (names, more) = self.sched.queued_names(MANY);
        if names.is_empty() {
            return;
        }
        let _ = writeln!(text, "queued, ready to run:");
        for name in &names {
            let _ = writeln!(text, "  {name}");
        }
        if more > 0 {
            let _ = writeln!(text, "  and {more} more");
        }
    }

    fn describe_waiters(&self, text: &mut String, scale: Scale) {
        let waiters = self.waiters.list();
        let in_wait_all = self.epochs.threads_waiting();
        if waiters.is_empty() && in_wait_all == 0 {
            let _ = writeln!(text, "waiting: none");
            return;
        }
        let _ = writeln!(text, "waiting:");
        for waiter in waiters.iter().take(MANY) {
            let time = scale.seconds_since(waiter.since);
            let what = if waiter.holds { "holds a guard of" } else { "for" };
            let _ = writeln!(text, "  {} since {time:.3} s {what} {}", waiter.thread, describe_var(&waiter.var));
        }
        if waiters.len() > MANY {
            let _ = writeln!(text, "  and {} more", waiters.len() - MANY);
        }
        if in_wait_all > 0 {
            let _ = writeln!(text, "  {in_wait_all} threads for everything that was pushed");
        }
    }
}

/// Describes the running ops of all engines, because a thread may serve several.
fn describe_running(text: &mut String, scale: Scale) {
    let mut seen: Vec<(String, Seen)> = Vec::new();
    let mut next = 0;
    while let Some(slot) = slot::nth(next) {
        next += 1;
        if let Some(op) = slot.running.look() {
            seen.push((slot.thread_name(), op));
        }
    }
    if seen.is_empty() {
        let _ = writeln!(text, "running: nothing");
        return;
    }
    let _ = writeln!(text, "running:");
    for (thread, op) in &seen {
        let _ = writeln!(text, "  {thread}: {}", describe_op(op, scale));
    }
}

fn describe_op(op: &Seen, scale: Scale) -> String {
    let mut text = format!("{} on {}", op.name, op.device);
    if op.since != 0 {
        let _ = write!(text, " since {:.3} s", scale.seconds_since(op.since));
    }
    for (what, write) in [("reads", false), ("writes", true)] {
        let ids: Vec<String> = op.vars.iter().filter(|v| v.1 == write).take(MANY).map(|v| v.0.to_string()).collect();
        if !ids.is_empty() {
            let _ = write!(text, ", {what} {}", ids.join(" "));
        }
    }
    text
}

/// A variable, the ops that hold it and the ops that queue for it.
fn describe_var(var: &Var) -> String {
    var.locked(|state, inner| {
        let mut text = format!("variable {}: ", inner.id);
        match (state.writing, state.reads) {
            (true, _) => text.push_str("being written"),
            (false, 0) => text.push_str("free"),
            (false, n) => {
                let _ = write!(text, "being read by {n}");
            }
        }
        let mut entry = state.first_queued();
        let mut count = 0;
        // SAFETY: queued accesses, and so their ops, are alive while the lock is held.
        unsafe {
            while !entry.is_null() {
                count += 1;
                if count <= MANY {
                    let how = if (*entry).mode() == Mode::Read { "reads" } else { "writes" };
                    let op = (*entry).op();
                    let missing = (*op).wait.load(std::sync::atomic::Ordering::Relaxed);
                    let _ = write!(text, "{} {} ({how}", if count == 1 { "; then" } else { "," }, (*op).name.as_str());
                    let _ =
                        if missing > 1 { write!(text, ", waits for {missing} variables)") } else { write!(text, ")") };
                }
                entry = (*entry).next;
            }
        }
        if count > MANY {
            let _ = write!(text, " and {} more", count - MANY);
        }
        text
    })
}

/// The state of all engines of the process that have something to do; of the first one if none has.
fn dump_all() -> String {
    let engines = fork::engines();
    let busy: Vec<_> = engines.iter().filter(|e| e.has_work()).collect();
    let shown = if busy.is_empty() { engines.iter().take(1).collect() } else { busy };
    shown.into_iter().map(|engine| engine.dump() + "\n").collect()
}

/// Writes the state of the engines to standard error at every signal `SIGUSR1`, from a thread of
/// its own. Only the first call does something; an error of the system is returned.
pub fn dump_on_sigusr1() -> std::io::Result<()> {
    use std::sync::atomic::{AtomicI32, Ordering};
    static PIPE: AtomicI32 = AtomicI32::new(-1);
    extern "C" fn wake(_: libc::c_int) {
        let byte = 0u8;
        // SAFETY: writing one byte to a pipe is allowed in a signal handler. A full pipe loses the
        // byte, which is fine.
        unsafe { libc::write(PIPE.load(Ordering::Relaxed), (&raw const byte).cast(), 1) };
    }
    if PIPE.load(Ordering::Relaxed) != -1 {
        return Ok(());
    }
    let mut ends = [0; 2];
    // SAFETY: the call fills two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is ours; only the reading end shall block.
    unsafe { libc::fcntl(ends[0], libc::F_SETFL, 0) };
    PIPE.store(ends[1], Ordering::Relaxed);
    let started = start_thread("mxrt-dump", move || {
        let mut byte = 0u8;
        // SAFETY: one byte into a byte that lives during the call.
        while unsafe { libc::read(ends[0], (&raw mut byte).cast(), 1) } != 0 {
            eprint!("{}", dump_all());
        }
    });
    if started.is_none() {
        PIPE.store(-1, Ordering::Relaxed);
        for end in ends {
            // SAFETY: the descriptors are ours, and nobody else has them: no handler is set.
            unsafe { libc::close(end) };
        }
        return Err(std::io::Error::from(std::io::ErrorKind::OutOfMemory));
    }
    // SAFETY: a zeroed action is a valid one; the handler does what handlers may do.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wake as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        match libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}
