// SPDX-License-Identifier: Apache-2.0
//! What a worker that was taken over would try.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use netserv_wire::container::{CONTROL_FD, WAKE_WORKER_FD};
use rustix::net::RecvFlags;
use rustix::time::{ClockId, clock_gettime};

use crate::java;
use crate::sys::{self, call};

/// Makes one attempt. Returns `done` if it worked, `refused N` with the error number, or what was found.
pub(crate) fn run(name: &str, properties: &BTreeMap<String, String>) -> String {
    let property = |key: &str| properties.get(key).map_or("", String::as_str);
    let number = |key: &str| properties.get(key).and_then(|value| value.parse().ok()).unwrap_or(0);
    match name {
        "write-root" => file(|| File::create("/planted").map(drop)),
        "write-worker" => file(|| File::options().write(true).open("/worker").map(drop)),
        "make-directory" => file(|| fs::create_dir("/made")),
        "read-proc" => file(|| fs::read("/proc/self/status").map(drop)),
        "read-etc" => file(|| fs::read("/etc/passwd").map(drop)),
        "write-data" => file(|| fs::write("/data/kept", "text")),
        "fill-data" => fill_data(),
        "store-write" => file(|| {
            let place = File::options().write(true).open(property("path"))?;
            place.write_all_at(property("text").as_bytes(), number("offset") as u64)
        }),
        "store-read" => store_read(property("path"), number("length")),
        "store-fill" => store_fill(property("path")),
        "store-create" => file(|| File::create("/store/other").map(drop)),
        "store-remove" => file(|| fs::remove_file("/store/kv")),
        "store-rename" => file(|| fs::rename("/store/kv", "/data/kv")),
        "store-link" => file(|| fs::hard_link("/store/kv", "/data/kv")),
        "store-exec" => file(|| exec(c"/store/kv")),
        "many-files" => many_files(),
        "open-files" => open_files(),
        "exec-data" => file(exec_data),
        "map-data" => file(map_data),
        "exec-self" => file(|| exec(c"/worker")),
        "java" => java::start(property("home"), property("options")),
        "close-eventfd" => raw(libc::SYS_close, [wake_fd(), 0, 0, 0, 0]),
        "copy-eventfd" => raw(libc::SYS_dup, [wake_fd(), 0, 0, 0, 0]),
        "copy-eventfd-by-fcntl" => raw(libc::SYS_fcntl, [wake_fd(), 1030, 20, 0, 0]),
        "replace-eventfd" => file(|| replace_eventfd(wake_fd())),
        "block-own" => file(block_own),
        "receive-elsewhere" => file(receive_elsewhere),
        "forget-file" => file(|| advise(4)),
        "read-ahead" => file(|| advise(2)),
        "send-descriptor" => file(|| sys::send_descriptor(CONTROL_FD, false)),
        "send-descriptors" => file(|| sys::send_descriptor(CONTROL_FD, true)),
        "send-own" => file(send_own),
        "fill-sockets" => fill_sockets(),
        "random" => file(|| File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut [0; 16]))),
        "write-null" => file(|| File::options().write(true).open("/dev/null")?.write_all(b"x")),
        "write-random" => file(|| File::options().write(true).open("/dev/random").map(drop)),
        "tcp" => raw(libc::SYS_socket, [2, 1, 0, 0, 0]),
        "udp6" => raw(libc::SYS_socket, [10, 2 | 0o2_004_000, 17, 0, 0]),
        "raw-socket" => raw(libc::SYS_socket, [2, 3, 1, 0, 0]),
        "ping-socket" => raw(libc::SYS_socket, [2, 2, 1, 0, 0]),
        "sctp-socket" => raw(libc::SYS_socket, [2, 1, 132, 0, 0]),
        "upper-layer" => file(upper_layer),
        "attach-filter" => file(|| socket_option(26)),
        "attach-group-filter" => file(|| socket_option(51)),
        "attach-bpf" => file(|| socket_option(50)),
        "keep-alive" => file(|| socket_option(9)),
        "signals-own" => file(signals_own),
        "signals-eventfd" => raw(libc::SYS_fcntl, [wake_fd(), 4, 0o24_000, 0, 0]),
        "listen" => file(|| TcpListener::bind("0.0.0.0:8080").map(drop)),
        "interfaces" => network_interfaces(),
        "list" => list(Path::new("/")),
        "programs" => programs(Path::new("/")).join(" "),
        "threads" => threads(),
        "memory" => take_memory(),
        "hold" => hold_memory(),
        "cpu" => burn(Duration::from_millis(1500)),
        "hang" => loop {
            std::hint::black_box(());
        },
        "panic" => panic!("the probe's last words"),
        "crash" => std::process::abort(),
        "exit" => std::process::exit(3),
        "exit-noisily" => {
            let _ = std::io::stderr().write_all(&[1; 4096]);
            std::process::exit(3)
        }
        "kill-host" => raw(libc::SYS_kill, [number("pid"), 9, 0, 0, 0]),
        "signal-host" => raw(libc::SYS_tgkill, [number("pid"), number("pid"), 9, 0, 0]),
        "trace-host" => raw(libc::SYS_ptrace, [16, number("pid"), 0, 0, 0]),
        other => other_call(other),
    }
}

fn other_call(name: &str) -> String {
    const NEW_USER: usize = 0x1000_0000;
    let null = 0;
    match name {
        "mount" => {
            raw(libc::SYS_mount, [c"none".as_ptr().addr(), c"/data".as_ptr().addr(), c"tmpfs".as_ptr().addr(), 0, 0])
        }
        "new-mount-api" => raw(libc::SYS_fsopen, [c"tmpfs".as_ptr().addr(), 0, 0, 0, 0]),
        "umount" => raw(libc::SYS_umount2, [c"/data".as_ptr().addr(), 2, 0, 0, 0]),
        "chroot" => raw(libc::SYS_chroot, [c"/data".as_ptr().addr(), 0, 0, 0, 0]),
        "mknod" => raw(libc::SYS_mknodat, [usize::MAX - 99, c"/data/sda".as_ptr().addr(), 0o060_600, 0x800, 0]),
        "unshare-user" => raw(libc::SYS_unshare, [NEW_USER, 0, 0, 0, 0]),
        "setns" => raw(libc::SYS_setns, [3, 0, 0, 0, 0]),
        "fork" => raw(libc::SYS_clone, [17, 0, 0, 0, 0]),
        "vfork" => raw(libc::SYS_clone, [0x4111, 0, 0, 0, 0]),
        "clone-files" => raw(libc::SYS_clone, [0x1_0900, 0, 0, 0, 0]),
        "clone-user" => raw(libc::SYS_clone, [17 | NEW_USER, 0, 0, 0, 0]),
        "clone3" => raw(libc::SYS_clone3, [null, 88, 0, 0, 0]),
        "execveat" => raw(libc::SYS_execveat, [3, c"".as_ptr().addr(), 0, 0, 0x1000]),
        "socket-inet" => raw(libc::SYS_socket, [2, 1, 0, 0, 0]),
        "socket-packet" => raw(libc::SYS_socket, [17, 3, 0x300, 0, 0]),
        "socket-netlink" => raw(libc::SYS_socket, [16, 3, 0, 0, 0]),
        "socket-unix" => raw(libc::SYS_socket, [1, 1, 0, 0, 0]),
        "bpf" => raw(libc::SYS_bpf, [0, null, 0, 0, 0]),
        "io-uring" => raw(libc::SYS_io_uring_setup, [1, null, 0, 0, 0]),
        "userfaultfd" => raw(libc::SYS_userfaultfd, [0, 0, 0, 0, 0]),
        "perf" => raw(libc::SYS_perf_event_open, [null, 0, usize::MAX, usize::MAX, 0]),
        "ptrace" => raw(libc::SYS_ptrace, [0, 0, 0, 0, 0]),
        "keyctl" => raw(libc::SYS_keyctl, [0, 0, 0, 0, 0]),
        "setuid" => raw(libc::SYS_setuid, [0, 0, 0, 0, 0]),
        "capset" => raw(libc::SYS_capset, [null, null, 0, 0, 0]),
        "init-module" => raw(libc::SYS_init_module, [null, 0, null, 0, 0]),
        "reboot" => raw(libc::SYS_reboot, [0, 0, 0, 0, 0]),
        "clock" => raw(libc::SYS_clock_settime, [0, null, 0, 0, 0]),
        "hostname" => raw(libc::SYS_sethostname, [c"x".as_ptr().addr(), 1, 0, 0, 0]),
        "personality" => raw(libc::SYS_personality, [0x0004_0000, 0, 0, 0, 0]),
        "watch-files" => raw(libc::SYS_inotify_init1, [0, 0, 0, 0, 0]),
        "watch-more" => raw(libc::SYS_inotify_add_watch, [3, c"/worker".as_ptr().addr(), 0xfff, 0, 0]),
        "machine" => raw(libc::SYS_sysinfo, [[0_u64; 16].as_mut_ptr().expose_provenance(), 0, 0, 0, 0]),
        "tty" => raw(libc::SYS_ioctl, [0, 0x5412, c"x".as_ptr().addr(), 0, 0]),
        "raise-limit" => raw(libc::SYS_prlimit64, [0, 7, [1_u64 << 20, 1 << 20].as_ptr().addr(), 0, 0]),
        "outlive-parent" => raw(libc::SYS_prctl, [1, 0, 0, 0, 0]),
        "block-eventfd" => raw(libc::SYS_fcntl, [usize::try_from(WAKE_WORKER_FD).expect("positive"), 4, 2, 0, 0]),
        "signal-owner" => raw(libc::SYS_fcntl, [usize::try_from(CONTROL_FD).expect("positive"), 8, 1, 0, 0]),
        unknown => format!("unknown attempt {unknown}"),
    }
}

fn raw(number: i64, arguments: [usize; 5]) -> String {
    match call(number, arguments) {
        Ok(_) => "done".to_owned(),
        Err(error) => format!("refused {error}"),
    }
}

fn file(attempt: impl FnOnce() -> std::io::Result<()>) -> String {
    match attempt() {
        Ok(()) => "done".to_owned(),
        Err(error) => format!("refused {}", error.raw_os_error().unwrap_or(0)),
    }
}

fn fill_data() -> String {
    let mut big = File::create("/data/big").expect("/data is writable");
    let mut written = 0;
    loop {
        match big.write(&[1; 65536]) {
            Ok(bytes) => written += bytes,
            Err(error) => return format!("{written} then {}", error.raw_os_error().unwrap_or(0)),
        }
    }
}

fn store_read(path: &str, length: usize) -> String {
    let mut bytes = vec![0; length];
    match File::open(path).and_then(|mut file| file.read_exact(&mut bytes)) {
        Ok(()) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("refused {}", error.raw_os_error().unwrap_or(0)),
    }
}

/// Writes until the kernel says no.
fn store_fill(path: &str) -> String {
    let mut place = File::options().append(true).open(path).expect("the file is writable");
    loop {
        if let Err(error) = place.write_all(&[1; 65536]) {
            return format!("refused {}", error.raw_os_error().unwrap_or(0));
        }
    }
}

fn many_files() -> String {
    let make = |number: u32| File::create(format!("/data/{number}")).map(drop);
    let (number, error) = (0..).find_map(|number| make(number).err().map(|error| (number, error))).expect("an end");
    format!("{number} then {}", error.raw_os_error().unwrap_or(0))
}

fn open_files() -> String {
    let mut open = vec![];
    loop {
        match File::open("/worker") {
            Ok(file) => open.push(file),
            Err(error) => return format!("{} then {}", open.len(), error.raw_os_error().unwrap_or(0)),
        }
    }
}

fn exec_data() -> std::io::Result<()> {
    let mut copy = File::options().create(true).truncate(true).write(true).mode(0o755).open("/data/copy")?;
    std::io::copy(&mut File::open("/worker")?, &mut copy)?;
    drop(copy);
    exec(c"/data/copy")
}

fn exec(program: &CStr) -> std::io::Result<()> {
    let arguments = [program.as_ptr().addr(), 0];
    match call(libc::SYS_execve, [arguments[0], arguments.as_ptr().addr(), 0, 0, 0]) {
        Ok(_) => Ok(()),
        Err(error) => Err(std::io::Error::from_raw_os_error(error)),
    }
}

fn wake_fd() -> usize {
    usize::try_from(WAKE_WORKER_FD).expect("positive")
}

/// Puts a descriptor of its own where a shared one is.
fn replace_eventfd(number: usize) -> std::io::Result<()> {
    let own = own_descriptor(&File::open("/worker")?);
    checked(libc::SYS_dup3, [own, number, 0, 0, 0])
}

/// Makes a socket of its own non-blocking and then blocking.
fn block_own() -> std::io::Result<()> {
    let (socket, _) = UnixStream::pair()?;
    let number = own_descriptor(&socket);
    checked(libc::SYS_fcntl, [number, 4, 0o4000, 0, 0])?;
    checked(libc::SYS_fcntl, [number, 4, 0, 0, 0])
}

/// Receives as one would who sent a descriptor to itself.
fn receive_elsewhere() -> std::io::Result<()> {
    let (socket, _) = UnixStream::pair()?;
    checked(libc::SYS_recvmsg, [own_descriptor(&socket), 0, 0, 0, 0])
}

/// Tells the kernel about a file that all containers share.
fn advise(advice: usize) -> std::io::Result<()> {
    checked(libc::SYS_fadvise64, [own_descriptor(&File::open("/worker")?), 0, 0, advice, 0])
}

/// Sends a descriptor to itself.
fn send_own() -> std::io::Result<()> {
    let (socket, _other) = UnixStream::pair()?;
    sys::send_descriptor(socket.as_raw_fd(), false)
}

/// Has the kernel keep datagrams that nobody reads. Returns how many bytes it took.
fn fill_sockets() -> String {
    const SOCKETS: u32 = 400;
    let mut kept = vec![];
    let mut taken = 0;
    for _ in 0..SOCKETS {
        let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else { break };
        let most = i32::MAX.to_ne_bytes();
        // `SO_RCVBUF`, which the kernel takes down to the most that it allows.
        let _ = checked(libc::SYS_setsockopt, [own_descriptor(&socket), 1, 8, most.as_ptr().addr(), most.len()]);
        let to = socket.local_addr().expect("a bound socket has an address");
        for _ in 0..16 {
            taken += socket.send_to(&[1; 32 * 1024], to).unwrap_or(0);
        }
        kept.push(socket);
    }
    let one = |socket: &UdpSocket| rustix::net::recv(socket, &mut [0; 64], RecvFlags::DONTWAIT).ok();
    let waiting = |socket: &UdpSocket| std::iter::from_fn(|| one(socket)).count();
    let datagrams: usize = kept.iter().map(waiting).sum();
    format!("{} of {taken}", datagrams * 32 * 1024)
}

fn upper_layer() -> std::io::Result<()> {
    let socket = TcpListener::bind("0.0.0.0:0")?;
    checked(libc::SYS_setsockopt, [own_descriptor(&socket), 6, 31, c"tls".as_ptr().addr(), 3])
}

/// Sets an option of a socket: `1`, or a filter of no instructions.
fn socket_option(option: usize) -> std::io::Result<()> {
    let socket = TcpListener::bind("0.0.0.0:0")?;
    let value = [1_u32, 0, 0, 0];
    checked(libc::SYS_setsockopt, [own_descriptor(&socket), 1, option, value.as_ptr().addr(), size_of_val(&value)])
}

/// Asks for signals from a socket of its own.
fn signals_own() -> std::io::Result<()> {
    let (socket, _) = UnixStream::pair()?;
    checked(libc::SYS_fcntl, [own_descriptor(&socket), 4, 0o20_000, 0, 0])
}

fn own_descriptor(file: &impl AsRawFd) -> usize {
    usize::try_from(file.as_raw_fd()).expect("descriptors are positive")
}

fn checked(number: i64, arguments: [usize; 5]) -> std::io::Result<()> {
    call(number, arguments).map(drop).map_err(std::io::Error::from_raw_os_error)
}

/// Returns the number of the network interfaces there are, which needs no more rights than to ask.
fn network_interfaces() -> String {
    let Ok(socket) = TcpListener::bind("0.0.0.0:0") else { return "no socket".to_owned() };
    let found = (1..100_i32).filter(|index| {
        // A `struct ifreq`: a name of 16 bytes, then the number.
        let mut request = [0_u8; 40];
        request[16..20].copy_from_slice(&index.to_ne_bytes());
        checked(libc::SYS_ioctl, [own_descriptor(&socket), 0x8910, request.as_mut_ptr().expose_provenance(), 0, 0])
            .is_ok()
    });
    found.count().to_string()
}

/// Maps a file of `/data` as a library's code is.
fn map_data() -> std::io::Result<()> {
    const READ_EXEC: usize = 5;
    fs::write("/data/code", [0xc3; 4096])?;
    sys::map(&File::open("/data/code")?, READ_EXEC)
}

fn list(directory: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    names.sort();
    let inside = names.iter().map(|path| {
        let below = if path.is_dir() { list(path) } else { String::new() };
        format!("{} {below}", path.display())
    });
    inside.collect()
}

/// Returns the files below a directory that are marked as programs.
fn programs(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.fold(vec![], |mut found, entry| {
        let path = entry.path();
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => found.extend(programs(&path)),
            Ok(metadata) if metadata.is_file() && metadata.mode() & 0o111 != 0 => {
                found.push(path.display().to_string());
            }
            Ok(_) | Err(_) => {}
        }
        found
    })
}

fn threads() -> String {
    let mut running = 1;
    loop {
        let park = || {
            std::thread::park();
        };
        match std::thread::Builder::new().stack_size(16 * 1024).spawn(park) {
            Ok(_) => running += 1,
            Err(error) => return format!("{running} then {}", error.raw_os_error().unwrap_or(0)),
        }
    }
}

fn take_memory() -> String {
    let mut taken = vec![];
    loop {
        taken.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}

/// Takes 20 MiB and keeps them.
fn hold_memory() -> String {
    std::mem::forget(std::hint::black_box(vec![1_u8; 20 << 20]));
    "held".to_owned()
}

/// Computes without end on so many threads, as a compiler does that comes to no end.
pub(crate) fn burn_on_all(threads: usize) -> ! {
    for _ in 1..threads {
        std::thread::spawn(|| {
            loop {
                std::hint::black_box(());
            }
        });
    }
    loop {
        std::hint::black_box(());
    }
}

/// Returns how much of the time the process really ran, in thousandths.
fn burn(wall: Duration) -> String {
    let cpu = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::try_from(time).expect("processor time is positive")
    };
    let (started, used) = (Instant::now(), cpu());
    while started.elapsed() < wall {
        std::hint::black_box(());
    }
    let used = (cpu() - used).as_micros();
    format!("{}", used * 1000 / started.elapsed().as_micros())
}
