// SPDX-License-Identifier: Apache-2.0
//! `module`: from an empty folder to a signed package and its tests.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{FakeNode, Home, check, text};
use netserv_model::api::{PostRequest, RequestResult};
use netserv_model::request::Body;
use netserv_model::{Digest, PublicKey, SessionId};
use netserv_skips::skipped;
use netserv_wire::nslp::Message;

const MANIFEST: &str = r#"manifest = 1
name = "example.org/tiny"
version = "1.2.3"
description = "Does nothing"
dependencies = ["packet>=1"]

[packet]
abi = 1
filters = ["udp port 5060"]
on-failure = "closed"

[[test]]
name = "passes"
input = "in.pcap"
output = "out.pcap"

[build]
command = "printf '\\0asm\\1\\0\\0\\0' > tiny.wasm; echo compiled"
wasm = "tiny.wasm"
"#;

/// A bundle with nothing but a manifest.
const JAR: &[u8] = include_bytes!("../../../../io/repository/tests/all/common/empty.jar");

/// A home with a module folder `tiny` whose code is the shortest that there is.
fn tiny() -> Home {
    let home = Home::with_key();
    let dir = home.path().join("tiny");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("netserv.toml"), MANIFEST).unwrap();
    home
}

/// Puts a program in place of the worker that prints this and ends with this code.
fn fake_worker(home: &Home, stdout: &str, stderr: &str, code: i32) -> PathBuf {
    let path = home.path().join("worker.sh");
    std::fs::write(home.path().join("stdout"), stdout).unwrap();
    std::fs::write(home.path().join("stderr"), stderr).unwrap();
    let dir = home.path().display();
    let script =
        format!("#!/bin/sh\necho \"$@\" > {dir}/arguments\ncat {dir}/stdout; cat {dir}/stderr >&2; exit {code}\n");
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Goal: whoever builds a module that is shipped is told of nothing to mend. Method: each project of `modules` with the code that is built.
#[test]
fn shipped_modules_are_built_without_a_warning() {
    let (home, modules) = (Home::with_key(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules"));
    let mut built = 0;
    let kinds = ["apps", "samples", "fixtures"].map(|kind| std::fs::read_dir(modules.join(kind)).unwrap());
    for folder in kinds.into_iter().flatten().map(|entry| entry.unwrap().path()) {
        let Ok(project) = std::fs::read_to_string(folder.join("netserv.toml")) else { continue };
        let code = |option: &str| {
            let line = project.lines().find_map(|line| line.strip_prefix(&format!("{option} = \"")));
            let file = line.map(|line| folder.join(line.trim_end_matches('"'))).filter(|file| file.exists());
            file.map(|file| [format!("--{option}"), file.display().to_string()])
        };
        let code: Vec<String> = ["wasm", "component"].into_iter().filter_map(code).flatten().collect();
        if code.is_empty() {
            continue;
        }
        let project = folder.join("netserv.toml").display().to_string();
        let mut arguments = vec!["module", "build", "--project", &project, "--out", "out.nsm"];
        arguments.extend(code.iter().map(String::as_str));
        let output = home.netserv(&arguments);
        assert!(output.status.success(), "{project}: {output:?}");
        assert_eq!(text(&output.stderr), "", "{project}");
        built += 1;
    }
    if built == 0 {
        skipped("shipped_modules_are_built_without_a_warning", "no module is built: ./dev build");
    }
}

fn run_tests(home: &Home, worker: &Path, arguments: &[&str]) -> Output {
    let mut all = vec!["module", "test", "tiny"];
    all.extend(arguments);
    home.command(&all).env("NETSERV_WORKER", worker).output().unwrap()
}

fn inspect(home: &Home, file: &str) -> serde_json::Value {
    let output = home.netserv(&["-j", "module", "inspect", file]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn build_sign_and_inspect_agree() {
    let home = tiny();
    let built = home.netserv(&["module", "build", "tiny"]);
    let stderr = text(&built.stderr);
    assert!(stderr.starts_with("building example.org/tiny@1.2.3: printf"), "{stderr}");
    assert!(stderr.contains("\ncompiled\nbuilt in "), "{stderr}");
    let unsigned = inspect(&home, "tiny/tiny-1.2.3.nsm");
    let digest: Digest = unsigned["digest"].as_str().unwrap().parse().unwrap();
    assert_eq!(unsigned["module"], "example.org/tiny@1.2.3");
    assert_eq!(unsigned["signed_by"], serde_json::json!([]));
    assert_eq!(unsigned["manifest"]["packet"]["on-failure"], "closed");

    let signed = home.netserv(&["module", "sign", "tiny/tiny-1.2.3.nsm"]);
    let public: PublicKey = text(&home.netserv(&["key", "show"]).stdout).trim().parse().unwrap();
    let size =
        format!("{:.1} KiB", std::fs::metadata(home.path().join("tiny/tiny-1.2.3.nsm")).unwrap().len() as f64 / 1024.0);
    let stdout = format!(
        "\
module       example.org/tiny@1.2.3
description  Does nothing
file         tiny/tiny-1.2.3.nsm, {size}
digest       {digest} (the package's, for --digest)
flavour      application/wasm, 8 B
packet part  core module without the packet ABI, 8 B
filter       udp port 5060
needs        packet>=1
on failure   packets are dropped
limits       memory 4.0 MiB, a call 500 ms, 64 timers
kv state     schema 1, 65536 entries, 4.0 MiB
signed by    {public}
"
    );
    check(&signed, 0, &stdout, "");
    assert_eq!(inspect(&home, "tiny/tiny-1.2.3.nsm")["signed_by"], serde_json::json!([public.to_string()]));
    assert!(!home.path().join("tiny/tiny-1.2.3.nsm.part").exists());
}

#[test]
fn a_package_can_be_built_of_a_manifest_and_code_alone() {
    let home = tiny();
    std::fs::write(home.path().join("code"), b"\0asm\x01\0\0\0").unwrap();
    let arguments = ["module", "build", "--project", "tiny/netserv.toml", "--wasm", "code", "--out", "a.nsm"];
    let output = home.netserv(&arguments);
    assert_eq!((text(&output.stderr).as_str(), output.status.code()), ("", Some(0)));
    assert!(!home.path().join("tiny/tiny.wasm").exists(), "the build command ran");
    assert_eq!(inspect(&home, "a.nsm")["module"], "example.org/tiny@1.2.3");
}

/// One package for nodes of both kinds, of what is named on the command line or below [build].
#[test]
fn a_package_may_have_a_bundle_beside_or_in_place_of_wasm() {
    let home = tiny();
    std::fs::write(home.path().join("code"), b"\0asm\x01\0\0\0").unwrap();
    std::fs::write(home.path().join("tiny/tiny.jar"), JAR).unwrap();
    let manifest = ["module", "build", "--project", "tiny/netserv.toml"];
    let build = |more: &[&str]| home.netserv(&[&manifest, more].concat());
    let flavours = |file: &str| {
        let shown = inspect(&home, file)["flavours"].clone();
        let names = shown.as_array().unwrap().iter().map(|flavour| flavour[0].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    let both = build(&["--wasm", "code", "--bundle", "tiny/tiny.jar", "--out", "both.nsm"]);
    let sizes = format!("flavour      application/wasm, 8 B\nflavour      application/java-archive, {} B\n", JAR.len());
    assert!(text(&both.stdout).contains(&sizes), "{both:?}");
    assert_eq!(flavours("both.nsm"), "application/wasm application/java-archive");
    assert!(build(&["--bundle", "tiny/tiny.jar", "--out", "osgi.nsm"]).status.success());
    assert_eq!(flavours("osgi.nsm"), "application/java-archive");
    let named = MANIFEST.replace("wasm = \"tiny.wasm\"", "wasm = \"tiny.wasm\"\nbundle = \"tiny.jar\"");
    std::fs::write(home.path().join("tiny/netserv.toml"), named).unwrap();
    let plan = home.netserv(&["module", "build", "tiny", "--dry-run"]);
    assert!(text(&plan.stdout).contains("would package  tiny/tiny.wasm\nwould package  tiny/tiny.jar\n"), "{plan:?}");
    assert!(home.netserv(&["module", "build", "tiny", "--out", "named.nsm"]).status.success());
    assert_eq!(flavours("named.nsm"), "application/wasm application/java-archive");
    assert!(home.netserv(&["module", "sign", "named.nsm"]).status.success());
    assert_eq!(inspect(&home, "named.nsm")["signed_by"].as_array().unwrap().len(), 1);
}

#[test]
fn a_bundle_that_is_none_is_said_before_any_node_sees_it() {
    let home = tiny();
    let build = |jar: &[u8]| {
        std::fs::write(home.path().join("x.jar"), jar).unwrap();
        text(&home.netserv(&["module", "build", "tiny", "--bundle", "x.jar"]).stderr)
    };
    let stderr = build(b"not a jar");
    assert!(stderr.starts_with("error: x.jar: the bundle is no jar: "), "{stderr}");
    assert!(stderr.contains("\nfix: name an OSGi bundle: `bundle` below [build]"), "{stderr}");
    let plain = JAR.iter().map(|byte| if *byte == b'S' { b's' } else { *byte }).collect::<Vec<u8>>();
    assert!(build(&plain[..plain.len() - 1]).contains("the bundle is no jar"));
}

#[test]
fn a_server_alone_shows_where_it_listens() {
    let home = tiny();
    std::fs::write(home.path().join("x.jar"), JAR).unwrap();
    let head = MANIFEST.split("[packet]").next().unwrap();
    let manifest = format!("{head}\n[server]\nlisten = [\"tcp port 80\"]\n");
    std::fs::write(home.path().join("tiny/netserv.toml"), manifest).unwrap();
    let shown = text(&home.netserv(&["module", "build", "tiny", "--bundle", "x.jar"]).stdout);
    assert!(shown.contains("\nlistens at   tcp port 80\n"), "{shown}");
    assert!(!shown.contains("on failure"), "{shown}");
}

/// Code of both flavours must pass the same tests; what one writes down as right, the other is compared with.
#[test]
fn tests_run_against_every_flavour_that_there_is() {
    let home = tiny();
    let report = concat!(
        r#"{"name":"passes","passed":true,"#,
        r#""packets":{"seen":3,"passed":2,"dropped":1,"modified":0,"injected":0},"counters":{},"log":[]}"#
    );
    let worker = fake_worker(&home, report, "", 0);
    let named = MANIFEST.replace("wasm = \"tiny.wasm\"", "wasm = \"tiny.wasm\"\nbundle = \"tiny.jar\"");
    std::fs::write(home.path().join("tiny/netserv.toml"), named).unwrap();
    std::fs::write(home.path().join("tiny/tiny.wasm"), b"\0asm\x01\0\0\0").unwrap();
    std::fs::write(home.path().join("tiny/tiny.jar"), JAR).unwrap();
    let run = |arguments: &[&str]| {
        std::fs::remove_file(home.path().join("arguments")).ok();
        let all = [&["module", "test", "tiny", "--no-build"], arguments].concat();
        let mut command = home.command(&all);
        command.env("NETSERV_WORKER", &worker).env("NETSERV_JVM", &worker).output().unwrap()
    };
    let stdout = "\
ok    wasm: passes (3 seen, 1 dropped, 0 changed or made)
ok    osgi: passes (3 seen, 1 dropped, 0 changed or made)
2 tests passed
";
    check(&run(&[]), 0, stdout, "");
    run(&["--accept"]);
    let last = std::fs::read_to_string(home.path().join("arguments")).unwrap();
    assert_eq!(last, "test --package-dir tiny\n", "the second flavour accepts nothing");
    let one = "ok    passes (3 seen, 1 dropped, 0 changed or made)\n1 test passed\n";
    check(&run(&["--flavour", "osgi"]), 0, one, "");
    let json: serde_json::Value = serde_json::from_slice(&run(&["-j"]).stdout).unwrap();
    assert_eq!((&json["tests"][0]["flavour"], &json["tests"][1]["flavour"]), (&"wasm".into(), &"osgi".into()));
    std::fs::write(home.path().join("tiny/netserv.toml"), MANIFEST).unwrap();
    let stderr = text(&run(&["--flavour", "osgi"]).stderr);
    assert!(stderr.starts_with("error: tiny/netserv.toml names no code of flavour osgi\n"), "{stderr}");
}

#[test]
fn dry_runs_write_nothing() {
    let home = tiny();
    let output = home.netserv(&["module", "build", "tiny", "--dry-run"]);
    assert!(text(&output.stdout).starts_with("would run      printf "), "{output:?}");
    let rest = "\nwould package  tiny/tiny.wasm\nwould write    tiny/tiny-1.2.3.nsm\n";
    assert!(text(&output.stdout).ends_with(rest), "{output:?}");
    let output = home.netserv(&["module", "build", "tiny", "--dry-run", "-j", "--wasm", "x"]);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let out = "tiny/tiny-1.2.3.nsm";
    assert_eq!(plan, serde_json::json!({ "would_run": null, "would_package": ["x"], "would_write": out }));
    assert_eq!(std::fs::read_dir(home.path().join("tiny")).unwrap().count(), 1);
    assert!(home.netserv(&["module", "build", "tiny"]).status.success());
    let before = std::fs::read(home.path().join("tiny/tiny-1.2.3.nsm")).unwrap();
    let output = home.netserv(&["module", "sign", "tiny/tiny-1.2.3.nsm", "--dry-run"]);
    assert!(text(&output.stdout).starts_with("would sign  sha256:"), "{output:?}");
    assert_eq!(std::fs::read(home.path().join("tiny/tiny-1.2.3.nsm")).unwrap(), before);
    let output = home.netserv(&["module", "new", "hello", "--dry-run"]);
    assert!(text(&output.stdout).contains("hello/netserv.toml\n"), "{output:?}");
    assert!(!home.path().join("hello").exists());
    let output = home.netserv(&["module", "test", "tiny", "--dry-run"]);
    check(&output, 0, "would test  passes\n", "");
}

#[test]
fn faults_of_the_source_are_named_with_a_fix() {
    let home = tiny();
    let stderr = "\
error: cannot read nowhere/netserv.toml: No such file or directory (os error 2)
fix: name a module's folder, or make one with `netserv module new`
";
    check(&home.netserv(&["module", "build", "nowhere"]), 1, "", stderr);
    let manifest = home.path().join("tiny/netserv.toml");
    std::fs::write(&manifest, MANIFEST.replace("abi = 1", "abi = 1\nport = 5")).unwrap();
    let output = home.netserv(&["module", "build", "tiny"]);
    assert!(text(&output.stderr).starts_with("error: tiny/netserv.toml: line "), "{output:?}");
    assert!(text(&output.stderr).contains(": unknown field `port`"), "{output:?}");
    assert!(text(&output.stderr).ends_with("\nfix: mend tiny/netserv.toml\n"), "{output:?}");
    std::fs::write(&manifest, MANIFEST.replace("echo compiled", "exit 3")).unwrap();
    let output = home.netserv(&["module", "build", "tiny"]);
    assert!(text(&output.stderr).contains("\nerror: the build command ended with exit status: 3: "), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
    std::fs::write(&manifest, MANIFEST.replace("0asm", "0text")).unwrap();
    let output = home.netserv(&["module", "build", "tiny"]);
    assert!(text(&output.stderr).contains("is not a WebAssembly module"), "{output:?}");
    std::fs::write(home.path().join("a.nsm"), "no package").unwrap();
    let output = home.netserv(&["module", "inspect", "a.nsm"]);
    assert!(text(&output.stderr).ends_with("fix: build it with `netserv module build`\n"), "{output:?}");
}

#[test]
fn a_package_larger_than_nodes_take_is_not_read() {
    let home = Home::with_key();
    let file = std::fs::File::create(home.path().join("a.nsm")).unwrap();
    file.set_len(netserv_model::limits::PACKAGE_BYTES_MAX + 1).unwrap();
    let stderr = "error: a.nsm is larger than 32.0 MiB\nfix: name a package that `netserv module build` made\n";
    check(&home.netserv(&["module", "sign", "a.nsm"]), 1, "", stderr);
    let home = tiny();
    let file = std::fs::File::create(home.path().join("code")).unwrap();
    file.set_len(netserv_model::limits::BLOB_BYTES_MAX + 1).unwrap();
    let output = home.netserv(&["module", "build", "tiny", "--wasm", "code"]);
    assert!(text(&output.stderr).starts_with("error: code has 33554433 bytes, more than 33554432\n"), "{output:?}");
}

#[test]
fn a_setup_takes_name_digest_and_dependencies_from_the_file() {
    let home = tiny();
    assert!(home.netserv(&["module", "build", "tiny", "--out", "a.nsm"]).status.success());
    let digest = inspect(&home, "a.nsm")["digest"].as_str().unwrap().to_owned();
    let answer = RequestResult {
        session: SessionId([0; 16]),
        nodes: Vec::new(),
        incomplete: None,
        end: None,
        withheld: Default::default(),
        returned: None,
        beside: Default::default(),
        took_us: 1,
    };
    let node = FakeNode::answering(200, serde_json::to_string(&answer).unwrap());
    let output = home.ask(&node, &["setup", "a.nsm", "--to", "10.0.0.1"]);
    assert_eq!(output.status.code(), Some(6));
    let request: PostRequest = serde_json::from_str(&node.seen()[0].1).unwrap();
    let message = Message::parse(request.message.as_bytes()).unwrap();
    let Body::Setup(setup) = message.body() else { panic!("{:?}", message.body()) };
    assert_eq!(setup.module.to_string(), "example.org/tiny@1.2.3");
    assert_eq!(setup.digest.to_string(), digest);
    assert_eq!(setup.dependencies[0].to_string(), "packet>=1");
    let file = std::fs::canonicalize(home.path().join("a.nsm")).unwrap();
    assert_eq!(setup.url, format!("file://{}", file.display()));

    let other = format!("sha256:{}", "9f".repeat(32));
    let output = home.ask(&node, &["setup", "a.nsm", "--to", "10.0.0.1", "--digest", &other]);
    assert!(text(&output.stderr).contains("has the package digest"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_failed_test_shows_what_differs() {
    let home = tiny();
    let lines = [
        concat!(
            r#"{"name":"passes","passed":true,"#,
            r#""packets":{"seen":3,"passed":2,"dropped":1,"modified":0,"injected":0},"counters":{},"log":[]}"#
        ),
        concat!(
            r#"{"name":"answers","passed":false,"difference":{"packet":2,"byte":17,"#,
            r#""expected":"0000  45 00\n0010  01 02  ..\n","actual":"0000  45 00\n0010  01 03  ..\n0020  ff\n"},"#,
            r#""wrong_counters":{"seen":[3,2],"gone":[1,null]},"#,
            r#""packets":{"seen":3,"passed":3,"dropped":0,"modified":0,"injected":0},"counters":{"seen":2},"#,
            r#""log":["info: hello"]}"#
        ),
        concat!(
            r#"{"name":"starts","passed":false,"failure":{"kind":"trapped","detail":"unreachable"},"#,
            r#""difference":{"packet":1,"expected":"0000  45\n"},"#,
            r#""packets":{"seen":0,"passed":0,"dropped":0,"modified":0,"injected":0},"counters":{},"log":[]}"#
        ),
    ];
    let worker = fake_worker(&home, &lines.join("\n"), "", 1);
    std::fs::write(home.path().join("tiny/tiny.wasm"), b"\0asm\x01\0\0\0").unwrap();
    let stdout = "\
ok    passes (3 seen, 1 dropped, 0 changed or made)
FAIL  answers
      counter gone: expected 1, is missing
      counter seen: expected 3, is 2
      packet 2 of the output differs from byte 17 on:
        0000  45 00
      - 0010  01 02  ..
      + 0010  01 03  ..
      + 0020  ff
      log info: hello
FAIL  starts
      cause: trapped: unreachable
      fix: find the trap with `netserv module test`
      packet 1 of the output is missing:
      - 0000  45
2 of 3 tests failed
";
    check(&run_tests(&home, &worker, &["--no-build"]), 7, stdout, "");
    let output = run_tests(&home, &worker, &["--no-build", "-j"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["passed"], false);
    let mut sent: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    sent["flavour"] = "wasm".into();
    assert_eq!(json["tests"][1], sent);
    assert_eq!(std::fs::read_to_string(home.path().join("arguments")).unwrap(), "test --package-dir tiny\n");
}

/// Goal: code is compiled once as long as it stays as it is, and what cannot be compiled is tested all the same, so that its
/// user learns why.
#[test]
fn a_component_is_compiled_once_until_it_changes() {
    let manifest = "manifest = 1\nname = \"example.org/tiny\"\nversion = \"1.0.0\"\n[server]\nlisten = [\"tcp port 80\"]\n\
                    [[http-test]]\nname = \"answers\"\n[build]\ncomponent = \"tiny.wasm\"\n";
    let report = "{\"name\":\"answers\",\"kind\":\"http\",\"passed\":true,\"status\":200,\"body_bytes\":0,\"took_us\":1,\"log\":[]}";
    check_compiled_once(manifest, report, "compile tiny.wasm ", "--compiled");
}

#[test]
fn a_packet_module_is_compiled_once_until_it_changes() {
    let report = "{\"name\":\"passes\",\"passed\":true,\"packets\":{\"seen\":1,\"passed\":1,\"dropped\":0,\"modified\":0,\
                  \"injected\":0},\"counters\":{},\"log\":[]}";
    check_compiled_once(MANIFEST, report, "compile --for-tests tiny.wasm ", "--compiled-packet");
}

/// Tests code several times with a worker that logs how it is called.
fn check_compiled_once(manifest: &str, report: &str, compile: &str, option: &str) {
    let home = tiny();
    std::fs::write(home.path().join("tiny/netserv.toml"), manifest).unwrap();
    let (log, worker) = (home.path().join("log"), home.path().join("worker.sh"));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {}\n[ $1 = compile ] || {{ echo '{report}'; exit; }}\n\
         while [ $# -gt 2 ]; do shift; done\ngrep -q good $1 && cp $1 $2\n",
        log.display()
    );
    std::fs::write(&worker, script).unwrap();
    std::fs::set_permissions(&worker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = |code: &str| -> Vec<String> {
        std::fs::write(home.path().join("tiny/tiny.wasm"), code).unwrap();
        let _ = std::fs::remove_file(&log);
        let output = run_tests(&home, &worker, &["--no-build"]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let names = |line: &str| Vec::from_iter(line.split(' ').map(|word| word.rsplit('/').next().unwrap())).join(" ");
        std::fs::read_to_string(&log).unwrap().lines().map(names).collect()
    };
    let first = ran("good");
    assert!(first.len() == 2 && first[0].starts_with(compile), "{first:?}");
    let test = format!("test --package-dir tiny {option} ");
    assert!(first[1].starts_with(&test) && first[1].ends_with(".cwasm"), "{first:?}");
    assert_eq!(ran("good"), first[1..]);
    assert_eq!(ran("good too").len(), 2);
    let refused = ran("bad");
    assert!(refused.len() == 2 && refused[1] == "test --package-dir tiny", "{refused:?}");
}

#[test]
fn a_worker_that_cannot_run_tests_is_a_failure() {
    let home = tiny();
    let worker = fake_worker(&home, "", "netserv-worker: cannot read tiny/in.pcap\n", 2);
    let output = run_tests(&home, &worker, &["--accept"]);
    assert!(
        text(&output.stderr).contains("error: cannot read tiny/in.pcap\nfix: mend what the cause names"),
        "{output:?}"
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(home.path().join("arguments")).unwrap(), "test --package-dir tiny --accept\n");
    let worker = fake_worker(&home, "not JSON\n", "", 0);
    assert_eq!(run_tests(&home, &worker, &[]).status.code(), Some(1));
    let output = run_tests(&home, Path::new("/nowhere"), &[]);
    assert!(text(&output.stderr).contains("NETSERV_WORKER is /nowhere, which is no file"), "{output:?}");
}

/// Goes the whole way of somebody who starts: new, build, test, with nothing from the network.
#[test]
fn a_new_module_builds_offline_and_passes_its_test() {
    let home = Home::with_key();
    let made = home.netserv(&["module", "new", "my-monitor"]);
    assert!(made.status.success(), "{made:?}");
    let again = home.netserv(&["module", "new", "my-monitor"]);
    assert!(text(&again.stderr).contains("my-monitor exists and is not overwritten"), "{again:?}");
    let lines = std::fs::read_to_string(home.path().join("my-monitor/src/lib.rs")).unwrap();
    let module = lines.split("#[cfg(test)]").next().unwrap().lines().count();
    assert!(module <= 40, "{module} lines");

    let built = with_rust(&home, &["module", "build", "my-monitor", "--key", ".config/netserv/key.pem"]);
    assert!(built.status.success(), "{built:?}");
    let inspected = inspect(&home, "my-monitor/my-monitor-0.1.0.nsm");
    assert_eq!(inspected["module"], "example.org/my-monitor@0.1.0");
    assert_eq!(inspected["signed_by"].as_array().unwrap().len(), 1);
    assert!(inspected["bytes"].as_u64().unwrap() < 200_000, "{inspected}");

    let worker = Path::new(env!("CARGO_BIN_EXE_netserv")).with_file_name("netserv-worker");
    if !worker.exists() {
        skipped("the packet test of a new module", &format!("{} is not built", worker.display()));
        return;
    }
    let tested = with_rust(&home, &["module", "test", "my-monitor"]);
    let stdout = "ok    drops what goes to the blocked port (3 seen, 1 dropped, 0 changed or made)\n1 test passed\n";
    assert_eq!(text(&tested.stdout), stdout, "{tested:?}");
    std::fs::copy(home.path().join("my-monitor/tests/in.pcap"), home.path().join("my-monitor/tests/out.pcap")).unwrap();
    let failed = home.netserv(&["module", "test", "my-monitor", "--no-build"]);
    assert!(text(&failed.stdout).contains("packet 2 of the output differs from byte "), "{failed:?}");
    assert_eq!(failed.status.code(), Some(7));
    let accepted = home.netserv(&["module", "test", "my-monitor", "--no-build", "--accept"]);
    assert!(accepted.status.success(), "{accepted:?}");
    assert!(home.netserv(&["module", "test", "my-monitor", "--no-build"]).status.success());
}

/// Goes the same way in Java, on a machine whose Maven repository holds nothing but what comes with netserv.
#[test]
fn a_new_java_module_builds_offline_and_passes_its_test() {
    let home = Home::with_key();
    let java = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../java/dist");
    let needed = [java.join("repository"), java.join("host"), worker_beside("netserv-jvm")];
    if let Some(missing) = needed.iter().find(|path| !path.exists()) {
        skipped("a new module in Java", &format!("{} is not built (./dev build)", missing.display()));
        return;
    }
    if Command::new("mvn").arg("-v").output().is_err() {
        skipped("a new module in Java", "there is no mvn");
        return;
    }
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        home.like_a_user(&mut command, &[]);
        // Maven asks the system, not the environment, where the home is.
        let repository = format!("-Dmaven.repo.local={}", home.path().join("m2").display());
        command.env("NETSERV_JAVA", &java).env("MAVEN_OPTS", repository).output().unwrap()
    };
    let made = run(&["module", "new", "--lang", "java", "example.org/my-monitor"]);
    assert!(made.status.success(), "{made:?}");
    assert!(
        text(&made.stdout).contains("my-monitor/src/main/java/org/example/my_monitor/PortFilter.java\n"),
        "{made:?}"
    );
    let built = run(&["module", "build", "my-monitor", "--key", ".config/netserv/key.pem"]);
    assert!(built.status.success(), "{built:?}");
    assert!(home.path().join("my-monitor/target/surefire-reports").exists(), "the unit tests ran");
    let inspected = inspect(&home, "my-monitor/my-monitor-0.1.0.nsm");
    assert_eq!(inspected["module"], "example.org/my-monitor@0.1.0");
    assert!(inspected["bytes"].as_u64().unwrap() < 20_000, "{inspected}");
    // The same sources make the same package.
    let again = run(&["module", "build", "my-monitor", "--out", "again.nsm"]);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(inspect(&home, "again.nsm")["digest"], inspected["digest"]);

    let tested = run(&["module", "test", "my-monitor", "--no-build"]);
    let stdout = "ok    drops what goes to the blocked port (3 seen, 1 dropped, 0 changed or made)\n1 test passed\n";
    assert_eq!(text(&tested.stdout), stdout, "{tested:?}");
}

#[test]
fn a_java_module_is_not_made_without_what_it_is_built_with() {
    let home = Home::empty();
    let output =
        home.command(&["module", "new", "--lang", "java", "a"]).env("NETSERV_JAVA", "/nowhere").output().unwrap();
    let stderr = "error: there is no /nowhere/repository\n\
        fix: install netserv-java beside netserv (./dev build makes it), or name it with NETSERV_JAVA\n";
    check(&output, 1, "", stderr);
    assert!(!home.path().join("a").exists());
}

fn worker_beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_netserv")).with_file_name(name)
}

/// Runs the program with the Rust tools of whoever runs the tests, who has another home.
fn with_rust(home: &Home, arguments: &[&str]) -> Output {
    let mut command = home.command(arguments);
    home.like_a_user(&mut command, &[]);
    command.output().unwrap()
}
