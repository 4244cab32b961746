// SPDX-License-Identifier: Apache-2.0
//! Bounds of the packet path.

use std::time::Duration;

/// Packets inside containers at a time, over all containers; more get their modules' failure verdict.
pub const PENDING_PACKETS_MAX: usize = 65_536;
/// Packets that one container may hold for each packet that could still be taken in without loss. With one, a container
/// that hoards gets half of the room at most, two of them a third each, and there is always room for others.
pub const HELD_PER_FREE_MAX: usize = 1;
/// The part of the packets that can be taken in without loss which may wait for modules that move; with more, the first go on
/// unseen.
pub const BUFFERED_PART: usize = 2;
/// Bytes of those of one lane.
pub const BUFFERED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often the watchdog of a lane looks.
pub const WATCH_INTERVAL: Duration = Duration::from_millis(10);
/// How long a worker may wait for the processor: how long it may leave packets alone while it is in no module, and how
/// much longer than its own time a call may take.
pub const PROCESSOR_WAIT_MAX: Duration = Duration::from_secs(5);
/// Packets that the modules of one user may make in a second, in the long run, unless the user has another limit.
pub const INJECTED_PER_SECOND_MAX: u32 = 20_000;
/// Packets that the modules of one user may make at once.
pub const INJECTED_BURST_MAX: u32 = 2048;
/// Bits of the packets that the modules of one user may make in a second, in the long run, unless the user has another
/// limit.
pub const INJECTED_BITS_PER_SECOND_MAX: u64 = 100_000_000;
/// Bits of the packets that the modules of one user may make at once; the last packet may go over it.
pub const INJECTED_BITS_BURST_MAX: u64 = 25_000_000;
/// Traces that run at a time; further ones are refused.
pub const TRACES_MAX: usize = 4;
/// Filters of one trace.
pub const TRACE_FILTERS_MAX: usize = 8;
/// Packets that one trace follows in a second; further ones are counted and not followed.
pub const TRACED_PER_SECOND_MAX: u32 = 1000;
/// Steps that are told of one packet; of further ones only the number.
pub const TRACE_STEPS_MAX: usize = 128;
/// Packets inside containers, over all of them, from which on the loop offers its core to workers after each batch, before it
/// takes more in: what they cannot take is better lost before work is spent on it.
pub const HELD_PACKETS_MANY: usize = UNWOKEN_PACKETS_MAX + 2 * netserv_model::limits::BATCH_PACKETS_MAX;
/// Turns of the packet loop in which no worker gave back anything although they hold many packets, after which it sleeps for a
/// moment, so that they get its core.
pub const UNANSWERED_TURNS_MIN: u32 = 4;
/// The same at most: after sleeps that brought no answers, and where workers answer by themselves.
pub const UNANSWERED_TURNS_MAX: u32 = 1024;
/// Sleeping containers with packets that are few: waking all of them costs little.
pub const SLEEPERS_FEW: usize = 8;
/// Packets that wait in the ring of one of few sleeping containers before it is woken, while full batches come in.
pub const UNWOKEN_PACKETS_MAX: usize = 4 * netserv_model::limits::BATCH_PACKETS_MAX;
/// How long they wait at most.
pub const UNWOKEN_TIME_FEW_MAX: Duration = Duration::from_millis(2);
/// Packets that wait in the ring of one of many sleeping containers before it is woken, while any come in.
pub const UNWOKEN_PACKETS_EACH_MAX: usize = netserv_model::limits::BATCH_PACKETS_MAX;
/// How long they wait for each sleeping container: a loop that does not keep up wakes one in this time, which takes a tenth
/// of a processor at most, and a hundred containers get full batches of it.
pub const UNWOKEN_TIME_EACH: Duration = Duration::from_micros(150);
/// How long they wait at most, however many containers sleep.
pub const UNWOKEN_TIME_MAX: Duration = Duration::from_millis(20);
/// Containers that are woken in one turn of the packet loop, so that the driver's rings do not overflow meanwhile.
pub const WAKES_PER_TURN_MAX: usize = 32;
/// Containers whose answers are looked for in one turn of the packet loop; the others have the next turns.
pub const VISITS_PER_TURN_MAX: usize = 64;
/// How long a packet that a module makes without having been given one waits at most while the packet loop is busy.
pub const EVENTFDS_INTERVAL_MAX: Duration = Duration::from_millis(1);
/// Containers without packets that one look of the watchdog is at; the others have the next looks.
pub const WATCHED_PER_LOOK_MAX: usize = 128;
/// How often memory of a container's ring that was not used meanwhile is given back: after a burst, in twice this time.
pub const GIVE_BACK_INTERVAL: Duration = Duration::from_secs(3);
/// Rings whose memory is given back in one look of the watchdog: each may take some tenths of a millisecond.
pub const GIVEN_BACK_PER_LOOK_MAX: usize = 4;
/// How often the guard of the real-time class looks.
pub const GUARD_INTERVAL: Duration = Duration::from_millis(5);
/// Looks of the guard at which a worker in the real-time class may be in the same call, or keep the packet thread from running.
pub const HOG_LOOKS_MAX: u32 = 3;
/// Looks, one after the other, at which one may run without packets.
pub const IDLE_LOOKS_MAX: u32 = 20;
/// Workers that the guard asks in one look, while there are no packets, whether they run.
pub const ASKED_PER_LOOK_MAX: usize = 8;
/// How long one that did is in the usual class.
pub const PENALTY: Duration = Duration::from_secs(1);
/// The share of time that packet thread and workers have in the real-time class, under the kernel's usual 0.95.
pub const SHARE_MAX: f64 = 0.88;
/// What they may use beyond that at once.
pub const SHARE_BURST: Duration = Duration::from_millis(40);
/// What has to be left for workers to look for packets again and again.
pub const SHARE_SPIN: Duration = Duration::from_millis(7);
/// What has to be left again before they return to the class.
pub const SHARE_RETURN: Duration = Duration::from_millis(20);
/// Workers that look for packets again and again at a time, over all lanes: they have the same cores.
pub const SPINNERS_MAX: usize = 4;
/// For how long packets gather at most (`dataplane.gather-us`), well below the time after which answers are late for anybody.
pub const GATHER_TIME_MAX: Duration = Duration::from_millis(1);
/// Packets a second from which on they gather: with fewer, hardly two would come in the time.
pub const GATHER_RATE_MIN: u32 = 2000;
/// How long packets are counted before they are called frequent.
pub const GATHER_WINDOW: Duration = Duration::from_millis(10);
/// Packets of a batch after which the next ones gather: from more, a wake-up has paid off.
pub const GATHER_BATCH_MAX: usize = netserv_model::limits::BATCH_PACKETS_MAX / 2;
