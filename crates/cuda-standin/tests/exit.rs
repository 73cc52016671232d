//! The end of a process whose streams have work.

use std::path::Path;
use std::process::Command;

fn compile(source: &str, flags: &[&str], to: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut cc = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    let status = cc.args(flags).arg("-o").arg(to).arg(source).arg("-ldl").status();
    assert!(status.unwrap().success());
}

#[test]
fn kernels_stop_before_the_process_takes_their_library_down() {
    let program = std::env::current_exe().unwrap();
    let driver = program.parent().unwrap().join("libmxrt_standin.so");
    let folder = std::env::temp_dir().join(format!("mxrt-standin-exit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (kernels, ends) = (folder.join("kernels.so"), folder.join("ends"));
    compile("kernels.c", &["-shared", "-fPIC", "-O1"], &kernels);
    compile("ends.c", &["-O1"], &ends);
    let output = Command::new(&ends).arg(&driver).arg(&kernels).env("STANDIN_DELAY_US", "0").output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((text.as_ref(), errors.as_ref()), ("no kernel ran\n", ""), "{}", output.status);
    assert!(output.status.success());
}
