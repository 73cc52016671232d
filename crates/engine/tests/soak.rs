//! Random programs of a hundred thousand ops on every kind of engine, compared with a sequential
//! interpreter: values, versions and failures. `MXRT_SOAK_SECONDS` says for how long (every kind
//! gets a program however little that is), `MXRT_SOAK_SEED` with which seed to begin: a failure
//! names the seed of its program.
#![cfg(debug_assertions)]

mod common;
use common::*;
use mxrt_engine::*;
use std::time::{Duration, Instant};

#[path = "common/programs.rs"]
mod programs;
use programs::*;

const OPS: usize = 100_000;

fn number(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, expected a whole number"))
}

#[test]
fn programs_of_a_hundred_thousand_ops_agree_with_a_serial_order() {
    let time = Duration::from_secs(number("MXRT_SOAK_SECONDS", 15));
    let _guard = watchdog(time.as_secs() + 600);
    quiet_panics();
    let mut seed = number("MXRT_SOAK_SEED", 1);
    let (began, mut programs, mut failed) = (Instant::now(), 0, 0);
    while programs < EngineKind::ALL.len() || began.elapsed() < time {
        let kind = EngineKind::ALL[programs % EngineKind::ALL.len()];
        let mut r = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..8).for_each(|_| _ = r.next());
        let (threads, cores) = (1 + r.below(8) as usize, 1 + r.below(4) as usize);
        let (n_vars, perturb) = (2 + r.below(100) as usize, r.below(3) == 0);
        // One failure spreads far; many programs should mostly compute.
        let rarity = [25, 500, 5000][r.below(3) as usize];
        println!(
            "seed {seed}: {kind}, {threads} threads, {cores} cores, {n_vars} variables, one in \
             {rarity} fails, delays {perturb}"
        );
        testing::set_perturb(perturb);
        failed += check_one(kind, cores, threads, OPS.div_ceil(threads), n_vars, rarity, seed);
        programs += 1;
        seed += 1;
    }
    testing::set_perturb(false);
    println!("{programs} programs of {OPS} ops; {failed} ops failed or were skipped; {:?}", began.elapsed());
    assert!(failed > 0, "no op failed: the programs prove nothing about failures");
}
