//! The programs of the tests' children. They print the text that the tests look for.

use mxrt_cuda::{CudaDriver, status};
use mxrt_engine::*;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Arc, Mutex};

fn gpu(index: u16) -> DeviceId {
    DeviceId::new(DeviceKind::GPU, index)
}

fn engine() -> &'static Engine {
    let config =
        Config { kind: EngineKind::ThreadedPerDeviceAsync, drivers: vec![CudaDriver::new(true)], ..Config::default() };
    Engine::start(config).unwrap()
}

fn spec<'a>(device: DeviceId, name: &'static str, vars: &'a [(&'a Var, Access)], lane: Lane) -> OpSpec<'a> {
    OpSpec::new(name, vars).device(device).lane(lane)
}

/// Copies bytes to a device and within it, and back; the bytes that came back.
fn round_trip(engine: &'static Engine, device: DeviceId, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let (n, source) = (bytes.len(), Arc::new(bytes));
    let result = Arc::new(Mutex::new(vec![0u8; n]));
    let [host, a, b, back] = [(); 4].map(|()| engine.new_var());
    let (given, taken) = (source.clone(), result.clone());
    let vars = [(&host, Access::Read), (&a, Access::Write)];
    let copied_in = engine.push_device(spec(device, "in", &vars, Lane::CopyIn), move |ctx| {
        let to = ctx.alloc(1, n)?;
        let from = given.as_ptr();
        ctx.keep(given);
        // SAFETY: `keep` holds the one side, the variable the other.
        unsafe { ctx.copy_in((1, to), (0, from), n) }
    });
    let vars = [(&a, Access::Read), (&b, Access::Write)];
    let moved = engine.push_device(spec(device, "move", &vars, Lane::Normal), move |ctx| {
        let from = ctx.memory(0).ok_or_else(|| OpError::new(FailureKind::Value, "nothing to move"))?;
        let to = ctx.alloc(1, n)?;
        // SAFETY: memory of the op's variables.
        unsafe { ctx.copy(to, from, n) }
    });
    drop(a);
    let vars = [(&b, Access::Read), (&back, Access::Write)];
    let copied_out = engine.push_device(spec(device, "out", &vars, Lane::CopyOut), move |ctx| {
        let from = ctx.memory(0).ok_or_else(|| OpError::new(FailureKind::Value, "nothing to copy"))?;
        let to = taken.lock().unwrap().as_mut_ptr();
        ctx.keep(taken);
        // SAFETY: `keep` holds the one side, the variable the other.
        unsafe { ctx.copy_out((1, to), (0, from), n) }
    });
    copied_in.and(moved).and(copied_out).map_err(|e| format!("{e:?}"))?;
    engine.wait_to_read(&back).map_err(|e| format!("{e:?}"))?;
    let bytes = result.lock().unwrap().clone();
    Ok(bytes)
}

fn bytes(n: usize, salt: u64) -> Vec<u8> {
    (0..n as u64).map(|i| (i * 31 + salt) as u8).collect()
}

#[test]
#[ignore = "a child of the tests"]
fn child_copies() {
    let engine = engine();
    let mut failed = 0;
    for round in 0..200u64 {
        // 20 MB: more than a chunk of the ring.
        let n = if round == 0 { 20 << 20 } else { 1 << (round % 14) };
        match round_trip(engine, gpu(0), bytes(n, round)) {
            Ok(back) => assert!(back == bytes(n, round), "round {round}"),
            Err(text) => {
                failed += 1;
                if failed == 1 {
                    println!("round {round}: {text}");
                }
            }
        }
    }
    println!("200 rounds, {failed} failed");
    if failed > 100 {
        let pushed = engine.push_device(spec(gpu(0), "late", &[], Lane::Normal), |_| Ok(()));
        assert!(pushed.unwrap_err().to_string().contains("is lost"));
        println!("lost for good");
    }
    let sum = engine.new_var();
    engine.push(OpSpec::new("host", &[(&sum, Access::Write)]), |_| Ok(()));
    engine.wait_to_read(&sum).unwrap();
}

#[test]
#[ignore = "a child of the tests"]
fn child_callers() {
    let engine = engine();
    let ask = |caller: u64| -> (usize, usize) {
        let (mut right, mut lost) = (0, 0);
        for round in 0..40 {
            let wanted = bytes(1 << (round % 12), caller * 40 + round);
            match round_trip(engine, gpu((caller % 2) as u16), wanted.clone()) {
                Ok(back) => {
                    assert!(back == wanted, "caller {caller}, round {round}");
                    right += 1;
                }
                Err(text) => {
                    assert!(text.contains("gpu(0) is lost: CUDA error 700"), "{text}");
                    lost += 1;
                }
            }
        }
        (right, lost)
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..64).map(|caller| scope.spawn(move || ask(caller))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let on = |device: usize| found.iter().skip(device).step_by(2);
    let (lost, right) = (on(0).filter(|(_, lost)| *lost > 0).count(), on(1).filter(|(right, _)| *right == 40).count());
    let x = engine.new_var();
    engine.push(OpSpec::new("host", &[(&x, Access::Write)]), |_| Ok(()));
    engine.wait_to_read(&x).unwrap();
    println!("64 callers: gpu(0) lost for {lost} of 32, gpu(1) right for {right} of 32, cpu right");
}

#[test]
#[ignore = "a child of the tests"]
fn child_two_devices() {
    let engine = engine();
    let x = engine.new_var();
    let seen = Arc::new(Mutex::new(Vec::new()));
    for step in 0..40u16 {
        let seen = seen.clone();
        let vars = [(&x, Access::Update)];
        let op = OpSpec::new("step", &vars).device(gpu(step % 2)).stream(step / 2);
        engine
            .push_device(op, move |ctx| {
                ctx.launch(move |_| {
                    seen.lock().unwrap().push(step);
                    Ok(())
                })
            })
            .unwrap();
    }
    engine.wait_to_read(&x).unwrap();
    assert_eq!(*seen.lock().unwrap(), (0..40).collect::<Vec<_>>());
    println!("in order");
}

/// A function of the driver, for another user of it in this process.
fn function(name: &CStr) -> *mut c_void {
    // SAFETY: the library is loaded already.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null());
    // SAFETY: as above.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!found.is_null());
    found
}

#[test]
#[ignore = "a child of the tests"]
fn child_context() {
    let engine = engine();
    assert_eq!(engine.device_count(DeviceKind::GPU), 2);
    // SAFETY: signatures of the driver.
    let (set, get) = unsafe {
        (
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> c_int>(function(
                c"cuCtxSetCurrent",
            )),
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut *mut c_void) -> c_int>(function(
                c"cuCtxGetCurrent",
            )),
        )
    };
    let mut current = std::ptr::null_mut();
    for ours in [0usize, 2, 1] {
        let context = std::ptr::without_provenance_mut(ours);
        // SAFETY: a context of the stand-in, or none.
        assert_eq!(unsafe { set(context) }, 0);
        for device in [0, 1] {
            assert_eq!(round_trip(engine, gpu(device), bytes(100, 1)).unwrap(), bytes(100, 1));
            engine.trim_device(gpu(device)).unwrap();
        }
        // SAFETY: a variable for the result.
        assert_eq!((unsafe { get(&mut current) }, current), (0, context));
    }
    println!("context kept");
}

#[test]
#[ignore = "a child of the tests"]
fn child_memory() {
    let engine = engine();
    println!("{}", round_trip(engine, gpu(0), bytes(6 << 20, 1)).unwrap_err());
    assert_eq!(round_trip(engine, gpu(0), bytes(2 << 20, 1)).unwrap(), bytes(2 << 20, 1));
    println!("the next one succeeded");
}

#[test]
#[ignore = "a child of the tests"]
fn child_status() {
    let driver = CudaDriver::new(std::env::var("TEST_CUDA").is_err());
    let found = status(&driver);
    println!("{} devices, {}", found.gpus.len(), found.reason.unwrap_or_default());
    if let (Some(version), Some(gpu)) = (found.version, found.gpus.first()) {
        println!("CUDA {version}, {} {:?}, {}", gpu.name, gpu.capability, gpu.memory);
    }
    let engine = Engine::start(Config { drivers: vec![driver], ..Config::default() }).unwrap();
    match engine.device(gpu(0)) {
        Ok(_) => println!("no error"),
        Err(error) => println!("error: {error}"),
    }
}
