//! How settings are laid over each other, printed, and refused.

use super::*;
use crate::settings::GrpcPort;

use std::time::Duration;

fn text(text: &str) -> Given {
    Given::Text(text.to_owned())
}

fn configured(text: &str) -> Result<Configuration, String> {
    let mut made = Configuration::default();
    made.text(Path::new("folder/serve.toml"), text)?;
    Ok(made)
}

#[test]
fn what_is_said_later_counts_and_what_is_said_of_one_model_before_all() {
    let mut made = configured(
        "port = 1\nqueue_bytes = \"1 MB\"\nbatch = \"auto\"\ndeadline = 2\n[models.a]\npath = \"m/a\"\nbatch = 8\n[models.b]\npath = \"/b\"\n",
    )
    .expect("a configuration");
    let variables =
        [("MXRT_SERVE_PORT", "2"), ("MXRT_SERVE_DEADLINE", "3.5"), ("MXRT_SERVE_CONFIG", "x"), ("HOME", "/")];
    made.environment(variables.map(|(key, value)| (key.to_owned(), value.to_owned()))).expect("variables");
    made.set(Origin::Option, "port", text("3")).expect("a port");
    made.set(Origin::Program, "grpc_port", Given::Nothing).expect("no port");
    made.set_model(Origin::Option, "b", "shapes", text("data=-1,3")).expect("a shape");
    made.set_model(Origin::Option, "b", "warm", text("[[2, 3], { data = [4, 3] }]")).expect("shapes");
    assert_eq!((made.server.port, made.server.grpc_port), (Some(3), GrpcPort::Off));
    assert_eq!(made.server.queue_bytes, 1_000_000);
    let specs = made.specs().expect("models");
    let [a, b] = &specs[..] else { panic!("two models") };
    assert_eq!((a.settings.batch, b.settings.batch), (BatchChoice::Rows(8), BatchChoice::Auto));
    assert_eq!(b.settings.deadline, Some(Duration::from_millis(3500)));
    assert_eq!(a.settings.path.as_deref(), Some(Path::new("folder/m/a")), "relative to the file");
    assert_eq!(b.settings.path.as_deref(), Some(Path::new("/b")));
    assert_eq!(b.settings.shapes, [("data".to_owned(), vec![-1, 3])]);
    assert_eq!(b.settings.warm, [[(String::new(), vec![2, 3])], [("data".to_owned(), vec![4, 3])]]);
}

#[test]
fn what_is_printed_says_the_same_again() {
    let mut made = configured(
        "host = \"::1\"\ngrace = 0.5\nbatch = 4\n[models.\"a b\"]\npath = \"/m\"\nshapes = { x = [-1, 2] }\n",
    )
    .expect("one");
    made.set(Origin::Option, "max_body", text("3 KiB")).expect("bytes");
    let printed = made.print().expect("a text");
    for line in
        ["host = \"::1\"  # folder/serve.toml:1", "max_body = \"3 KiB\"  # --max-body", "port = 8000  # default"]
    {
        assert!(printed.lines().any(|found| found == line), "{line}\n{printed}");
    }
    let again = configured(&printed).expect(&printed);
    let without =
        |text: &str| text.lines().map(|line| line.split("  # ").next().unwrap_or("").to_owned()).collect::<Vec<_>>();
    assert_eq!(without(&again.print().expect("a text")), without(&printed));
}

#[test]
fn unknown_keys_name_the_nearest() {
    let error = |text: &str| configured(text).expect_err("an error");
    assert!(error("[model.a]\npath = 'a'\n").ends_with("there is no key 'model'; did you mean 'models'?"));
    assert_eq!(error("\nprot = 1\n"), "folder/serve.toml:2: there is no key 'prot'; did you mean 'port'?");
    assert!(error("[models.a]\nbach = 1\n").ends_with("did you mean 'batch'?"));
    assert!(error("path = \"x\"\n").contains("belongs to one model"));
    let mut made = Configuration::default();
    let wrong = made.environment([("MXRT_SERVE_GRPCPORT".to_owned(), "1".to_owned())]).expect_err("unknown");
    assert_eq!(wrong, "there is no MXRT_SERVE_GRPCPORT; did you mean MXRT_SERVE_GRPC_PORT?");
    let wrong = made.set(Origin::Option, "max_bodies", Given::Integer(1)).expect_err("unknown");
    assert_eq!(wrong, "there is no --max-bodies; did you mean --max-body?");
}

#[test]
fn wrong_values_name_their_place_and_what_was_expected() {
    let error = |text: &str| configured(text).expect_err("an error");
    assert_eq!(
        error("port = 70000"),
        "folder/serve.toml:1: port is 70000; expected a whole number from 0 to 65535, or off"
    );
    for (text, words) in [
        ("queue_requests = 0", "a whole number, 1 or more"),
        ("grace = -1", "a number of seconds"),
        ("batch = 1", "off, auto or the rows"),
        ("inherited = \"maybe\"", "on or off"),
        ("[models.a]\nshapes = { x = [0] }", "-1 is any extent"),
        ("[models.a]\ndtypes = { x = \"float33\" }", "unknown dtype 'float33'"),
        ("[models.\"a/b\"]\npath = \"x\"", "is no name of a model"),
        ("models = 1", "expected a section for each model, [models.NAME]"),
        ("[[models]]\npath = \"x\"", "expected a section for each model, [models.NAME]"),
        ("io_threads = 100000", "a whole number from 1 to 4096"),
        ("max_body = 0", "a number of bytes, 1 or more"),
        ("queue_bytes = \"0 MiB\"", "a number of bytes, 1 or more"),
        ("header_timeout = 0", "a number of seconds, more than 0"),
        ("body_timeout = 0.0", "a number of seconds, more than 0"),
        ("deadline = 0", "a number of seconds, more than 0"),
        ("[models]\na = 1", "expected a section"),
    ] {
        assert!(error(text).contains(words), "{text}: {}", error(text));
    }
}

#[test]
fn keys_are_there_once_and_defaults_can_be_read() {
    let mut keys: Vec<&str> = SERVER.iter().map(|row| row.key).chain(MODEL.iter().map(|row| row.key)).collect();
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{keys:?}");
    for row in SERVER {
        if let Some(given) = (row.show)(&Config::default()) {
            (row.read)(&mut Config::default(), Value::new(&given)).expect(row.key);
        }
    }
    for row in MODEL {
        if let Some(given) = (row.show)(&ModelSettings::default()) {
            (row.read)(&mut ModelSettings::default(), Value::new(&given)).expect(row.key);
        }
    }
}

#[test]
fn the_settings_of_an_artifact_name_no_code_and_no_file_outside() {
    let folder = std::env::temp_dir().join(format!("mxrt-artifact-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("code")).expect("a folder");
    std::fs::write(folder.join("labels.txt"), "a\n").expect("a file");
    let outside = folder.with_extension("txt");
    std::fs::write(&outside, "a\n").expect("a file");
    let mut made = Configuration::default();
    made.add_model("m").expect("a model");
    let read = |made: &Configuration, text: &str| {
        std::fs::write(folder.join("mxrt.toml"), text).expect("a file");
        made.of_models().settings_in("m", &folder)
    };
    assert_eq!(read(&made, "labels = \"labels.txt\"").expect("settings").labels, Some(folder.join("labels.txt")));
    for (text, words) in [
        ("hooks = \"labels.txt\"".to_owned(), "names hooks"),
        (format!("labels = \"{}\"", outside.display()), "leads out of the folder of the model"),
        ("params = \"/etc/passwd\"".to_owned(), "leads out of the folder of the model"),
        ("golden = \"../\"".to_owned(), "leads out of the folder of the model"),
    ] {
        let error = read(&made, &text).expect_err(&text);
        assert!(error.contains(words), "{text}: {error}");
    }
    made.set_model(Origin::Option, "m", "labels", text(&outside.to_string_lossy())).expect("a file");
    made.set_model(Origin::Option, "m", "hooks", text("hooks.py")).expect("a file");
    let settings = read(&made, "batch = 2").expect("the operator may name any file");
    assert_eq!((settings.labels.as_deref(), settings.hooks.is_some()), (Some(&*outside), true));
    std::fs::remove_dir_all(folder).expect("a folder");
    std::fs::remove_file(outside).expect("a file");
}
