//! Stacks that are too small for a call.

use mxrt_engine::{STACK_NEEDED, has_stack};

fn in_thread(stack: usize) -> bool {
    std::thread::Builder::new().stack_size(stack).spawn(has_stack).unwrap().join().unwrap()
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stack is known on Linux only")]
fn a_thread_with_little_stack_is_known() {
    assert!(has_stack());
    assert!(!in_thread(STACK_NEEDED - 4096));
    assert!(in_thread(4 * STACK_NEEDED));
}
