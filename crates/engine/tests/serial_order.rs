//! Small random programs on every kind of engine, with and without delays between the steps of the
//! protocol. The long ones are in `soak.rs`. In a process of its own, whose accesses are traced.
#![cfg(debug_assertions)]

mod common;
use common::*;
use mxrt_engine::*;

#[path = "common/programs.rs"]
mod programs;
use programs::*;

#[test]
fn random_programs_agree_with_a_serial_order() {
    let _guard = watchdog(300);
    quiet_panics();
    let rounds: u64 = std::env::var("MXRT_TEST_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(1);
    for round in 0..rounds {
        for perturb in [false, true] {
            testing::set_perturb(perturb);
            for kind in EngineKind::ALL {
                for (threads, n_vars, cores) in [(1, 7, 2), (3, 7, 1), (3, 16, 2), (4, 8, 3), (8, 60, 4)] {
                    let seed = 1 + round * 1000 + n_vars as u64 * 10 + threads as u64;
                    check_one(kind, cores, threads, 6000 / threads, n_vars, 25, seed);
                }
            }
        }
    }
    testing::set_perturb(false);
}
