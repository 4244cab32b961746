// SPDX-License-Identifier: Apache-2.0
//! Web servers as people run them, asked for the file that `netserv prove address` writes.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use netserv_patience::wait_for;
use netserv_skips::skipped;

use super::*;

/// A developer's own server of files, without a framework.
const NODE: &str = r"
const [http, https, fs, path] = ['http', 'https', 'fs', 'path'].map(require);
const [root, plain, tls, certificate] = process.argv.slice(1);
const answer = (request, response) => fs.readFile(path.join(root, path.normalize(request.url)), (error, file) => {
  response.writeHead(error ? 404 : 200, { 'content-type': 'text/plain' });
  response.end(error ? 'not found' : file);
});
const credentials = { key: fs.readFileSync(certificate), cert: fs.readFileSync(certificate) };
http.createServer(answer).listen(plain, '::');
https.createServer(credentials, answer).listen(tls, '::');
";

/// Goal: nginx and Apache as Debian configures them, and a server of Node, answer a node that asks their address: in both versions of IP, by
/// HTTP and by HTTPS, where an operator wants a certificate, too. A user whose file is not there gets nothing.
#[test]
fn servers_that_people_run_vouch_for_their_users() {
    for (program, start) in [("nginx", nginx as fn(&Files) -> Command), ("apache2", apache), ("node", node)] {
        if Command::new(program).arg("-v").output().is_err() {
            skipped("servers_that_people_run_vouch_for_their_users", &format!("{program} is not installed"));
            continue;
        }
        let files = Files::new();
        let _running = Running::start(&mut start(&files));
        for host in ["127.0.0.1", "::1"] {
            let at = |port: u16| SocketAddr::new(host.parse().unwrap(), port);
            wait_for(program, LONG, || {
                [files.plain, files.tls].iter().all(|port| TcpStream::connect(at(*port)).is_ok())
            })
            .unwrap();
            for (plain, how) in [
                (at(files.plain), AddressTls::Allow),
                (at(files.plain), AddressTls::Require),
                (closed(host), AddressTls::Allow),
            ] {
                assert_eq!(ask(plain, at(files.tls), how), Ok(Digest([0xab; 32])), "{program} at {plain}, {how:?}");
            }
        }
        fs::remove_file(files.path("www/html/.well-known/netserv/k-a")).unwrap();
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_fails(ask(at(files.plain), at(files.tls), AddressTls::Allow), "404");
    }
}

/// A server's folder: what it serves, its configuration and its ports.
struct Files {
    folder: tempfile::TempDir,
    plain: u16,
    tls: u16,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        // The servers read it as users of their own.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let files = Files { folder, plain: free_port(), tls: free_port() };
        let well_known = files.path("www/html/.well-known/netserv");
        fs::create_dir_all(&well_known).unwrap();
        fs::create_dir(files.path("run")).unwrap();
        fs::write(well_known.join("k-a"), format!("{}\n", digest())).unwrap();
        fs::write(files.path("both.pem"), ADDRESS).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Copies a configuration of Debian's, with other places and ports in it.
    fn configure(&self, from: &str, changes: &[(&str, String)]) {
        let copied = Command::new("cp").args(["-rL", from]).arg(self.path("etc")).status().unwrap();
        assert!(copied.success(), "{from} is copied");
        for file in files_below(&self.path("etc")) {
            let Ok(text) = fs::read_to_string(&file) else { continue };
            let changed = changes.iter().fold(text, |text, (from, to)| text.replace(from, to));
            fs::write(&file, changed).unwrap();
        }
    }
}

/// Debian's `default` site, in which the lines for TLS are no comments any more.
fn nginx(files: &Files) -> Command {
    let [www, etc, run] = ["www", "etc", "run"].map(|name| files.path(name).display().to_string());
    let changes = [
        ("/etc/nginx", etc.clone()),
        ("/var/www", www),
        ("/var/log/nginx", run.clone()),
        ("/run/nginx.pid", format!("{run}/nginx.pid")),
        (":80 default_server", format!(":{} default_server", files.plain)),
        ("listen 80 default_server", format!("listen {} default_server", files.plain)),
        ("# listen 443 ssl", format!("listen {} ssl", files.tls)),
        ("# listen [::]:443 ssl", format!("listen [::]:{} ssl", files.tls)),
        (
            "# include snippets/snakeoil.conf",
            format!("ssl_certificate {0}; ssl_certificate_key {0}", certificate(files)),
        ),
    ];
    files.configure("/etc/nginx", &changes);
    let mut command = Command::new("nginx");
    command.args(["-g", "daemon off;", "-c"]).arg(files.path("etc/nginx.conf"));
    command
}

/// Debian's `000-default` and `default-ssl`, as `a2enmod ssl` and `a2ensite default-ssl` put them in force.
fn apache(files: &Files) -> Command {
    let www = files.path("www").display().to_string();
    let changes = [
        ("/var/www", www),
        ("Listen 80", format!("Listen {}", files.plain)),
        ("Listen 443", format!("Listen {}", files.tls)),
        ("*:80>", format!("*:{}>", files.plain)),
        ("*:443>", format!("*:{}>", files.tls)),
        ("/etc/ssl/certs/ssl-cert-snakeoil.pem", certificate(files)),
        ("/etc/ssl/private/ssl-cert-snakeoil.key", certificate(files)),
    ];
    files.configure("/etc/apache2", &changes);
    for (kind, names) in
        [("mods", &["ssl.load", "ssl.conf", "socache_shmcb.load"][..]), ("sites", &["default-ssl.conf"])]
    {
        for name in names {
            let enabled = files.path(&format!("etc/{kind}-enabled/{name}"));
            // It is there where a machine has it enabled.
            let _ = symlink(files.path(&format!("etc/{kind}-available/{name}")), enabled);
        }
    }
    let mut command = Command::new("apache2");
    command.arg("-DFOREGROUND").arg("-d").arg(files.path("etc")).arg("-f").arg(files.path("etc/apache2.conf"));
    for place in ["RUN_DIR", "LOCK_DIR", "LOG_DIR"] {
        command.env(format!("APACHE_{place}"), files.path("run"));
    }
    command.env("APACHE_PID_FILE", files.path("run/apache2.pid"));
    command.envs(["APACHE_RUN_USER", "APACHE_RUN_GROUP"].map(|name| (name, "www-data")));
    command
}

fn node(files: &Files) -> Command {
    let mut command = Command::new("node");
    command.args(["-e", NODE]).arg(files.path("www/html"));
    command.args([files.plain.to_string(), files.tls.to_string(), certificate(files)]);
    command
}

fn certificate(files: &Files) -> String {
    files.path("both.pem").display().to_string()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn free_port() -> u16 {
    TcpListener::bind(("::", 0)).unwrap().local_addr().unwrap().port()
}

/// A server that ends with the test, and its workers with it.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}
