// SPDX-License-Identifier: Apache-2.0
//! The goals of the figures: the one table from which the bench says what is met, and which docs/figures.md shows.

use serde::{Serialize, Serializer};

use super::Part;

/// What the median of a measurement has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

impl Bound {
    /// Returns whether a measurement keeps it.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(bound) => value >= bound,
            Bound::AtMost(bound) => value <= bound,
        }
    }
}

/// A goal: one row of §Figures of docs/figures.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    /// net-monitor by the driver `afxdp`, against the kernel with as many cores.
    Monitor,
    /// The same with all of the router on one core.
    MonitorOneCore,
    /// The same by what a packet takes of the machine's processor time.
    MonitorProcessorTime,
    /// keep-alive by the driver `afxdp`.
    KeepAlive,
    /// Traffic that no module wants, by the driver `afxdp`.
    Unmatched,
    /// The same, forwarded by the XDP program.
    XdpForward,
    /// net-monitor by the driver `nfqueue`.
    MonitorNfqueue,
    /// What is delivered of three times as much as is taken.
    Overload,
    /// What is lost beside a program that wants all of the node's core.
    Hog,
    /// What net-monitor adds to the latency.
    AddedLatency,
    /// The rate with many containers.
    ManyContainers,
    /// The rate with many filters.
    ManyFilters,
    /// What two lanes pass, against one.
    TwoLanes,
    /// Memory of a container.
    ContainerMemory,
    /// How long a module's state of 1 MB takes from one container into another.
    StateMoves,
    /// SETUP of a module that the nodes have.
    SetupCached,
    /// SETUP of a module that the nodes fetch.
    SetupFetched,
    /// Answers of the API while a hundred users install.
    CrowdApi,
    /// Timers while a hundred users install.
    CrowdTimers,
    /// The decision about a stranger with the longest chain of grants.
    ChainDecision,
    /// The decision about a stranger with a checklist.
    ChecklistDecision,
    /// Answers to a thousand strangers.
    StrangersAdmission,
    /// What a call of a module costs.
    Call,
    /// From trap to recovered.
    Recovery,
    /// GIST handshakes.
    Handshakes,
    /// TLS handshakes with signaling peers.
    TlsHandshakes,
    /// SETUP over five nodes of a module that they have.
    SetupFiveCached,
    /// SETUP over five nodes of a module that they fetch.
    SetupFiveFetched,
    /// TELL to three nodes and back.
    TellThree,
    /// From a route that changed to the module on the new path.
    MovedRoute,
    /// Memory of an idle session.
    IdleSession,
    /// How evenly sessions are refreshed that were set up one after the other.
    RefreshBurst,
    /// How evenly sessions are refreshed that were set up together.
    RefreshBurstAtOnce,
    /// net-monitor as a bundle, by the driver `afxdp`.
    Bundle,
    /// The same by the driver `nfqueue`.
    BundleNfqueue,
    /// keep-alive as a bundle.
    BundleKeepAlive,
    /// Memory of a container with a JVM.
    JvmMemory,
    /// SETUP of a bundle, with a container of its own.
    BundleSetup,
    /// SETUP of a bundle into a container that runs.
    BundleSetupWarm,
    /// Memory of many containers with a JVM.
    ManyJvms,
    /// Requests to an HTTP module, against `wasmtime serve`.
    HttpWasmtime,
    /// Requests to an HTTP module, against CGI.
    HttpCgi,
    /// An instance of an HTTP module.
    HttpInstance,
    /// Cold start of a component.
    HttpColdStart,
    /// Memory of an idle server module.
    IdleServer,
    /// One intercepted flow.
    InterceptedFlow,
    /// Many intercepted connections.
    InterceptedFlows,
    /// The demo.
    Demo,
    /// The daemon's program.
    NetservdSize,
    /// The command line's program.
    NetservSize,
    /// The worker's program.
    WorkerSize,
    /// The Java host with its building blocks.
    JavaSize,
    /// The code of a packet module.
    PacketCodeSize,
    /// The code of a server module.
    ServerCodeSize,
    /// The code of a part of an application.
    ApplicationCodeSize,
}

/// What there is to know of a goal. The bound's number is in the unit of the text, which is that of the measurements.
struct Entry {
    part: Part,
    bound: Bound,
    /// What follows the number.
    unit: &'static str,
    /// The row's text; `{}` stands for sign, number and unit.
    text: &'static str,
}

impl Goal {
    /// Every goal, as docs/figures.md lists them.
    pub const ALL: [Goal; 55] = [
        Goal::Monitor,
        Goal::MonitorOneCore,
        Goal::MonitorProcessorTime,
        Goal::KeepAlive,
        Goal::Unmatched,
        Goal::XdpForward,
        Goal::MonitorNfqueue,
        Goal::Overload,
        Goal::Hog,
        Goal::AddedLatency,
        Goal::ManyContainers,
        Goal::ManyFilters,
        Goal::TwoLanes,
        Goal::ContainerMemory,
        Goal::StateMoves,
        Goal::SetupCached,
        Goal::SetupFetched,
        Goal::CrowdApi,
        Goal::CrowdTimers,
        Goal::ChainDecision,
        Goal::ChecklistDecision,
        Goal::StrangersAdmission,
        Goal::Call,
        Goal::Recovery,
        Goal::Handshakes,
        Goal::TlsHandshakes,
        Goal::SetupFiveCached,
        Goal::SetupFiveFetched,
        Goal::TellThree,
        Goal::MovedRoute,
        Goal::IdleSession,
        Goal::RefreshBurst,
        Goal::RefreshBurstAtOnce,
        Goal::Bundle,
        Goal::BundleNfqueue,
        Goal::BundleKeepAlive,
        Goal::JvmMemory,
        Goal::BundleSetup,
        Goal::BundleSetupWarm,
        Goal::ManyJvms,
        Goal::HttpWasmtime,
        Goal::HttpCgi,
        Goal::HttpInstance,
        Goal::HttpColdStart,
        Goal::IdleServer,
        Goal::InterceptedFlow,
        Goal::InterceptedFlows,
        Goal::Demo,
        Goal::NetservdSize,
        Goal::NetservSize,
        Goal::WorkerSize,
        Goal::JavaSize,
        Goal::PacketCodeSize,
        Goal::ServerCodeSize,
        Goal::ApplicationCodeSize,
    ];

    /// Returns the bound.
    pub fn bound(self) -> Bound {
        self.entry().bound
    }

    /// Returns the part of the bench that measures it.
    pub fn part(self) -> Part {
        self.entry().part
    }

    /// Returns the goal as docs/figures.md has it, for instance "10,000 filters ≥ 0.95 of one".
    pub fn text(self) -> String {
        let Entry { bound, unit, text, .. } = self.entry();
        let (sign, value) = match bound {
            Bound::AtLeast(value) => ('≥', value),
            Bound::AtMost(value) => ('≤', value),
        };
        text.replace("{}", &format!("{sign} {}{unit}", number(value)))
    }

    fn entry(self) -> Entry {
        use Bound::{AtLeast, AtMost};
        let (part, bound, unit, text) = match self {
            Goal::Monitor => (
                Part::Ladder,
                AtLeast(1.0),
                "",
                "net-monitor through `afxdp` {} of kernel forwarding, 64 bytes, equal cores",
            ),
            Goal::MonitorOneCore => (Part::Ladder, AtLeast(0.5), "", "The same with all of the router on one core {}"),
            Goal::MonitorProcessorTime => {
                (Part::Ladder, AtLeast(0.6), "", "The same per second of the whole machine's processor time {}")
            }
            Goal::KeepAlive => (
                Part::Ladder,
                AtLeast(1.0),
                "",
                "keep-alive answers 340-byte NOTIFYs at {} of kernel forwarding, `afxdp`, equal cores",
            ),
            Goal::Unmatched => (
                Part::Ladder,
                AtLeast(0.97),
                "",
                "Traffic that no module wants {} of kernel forwarding, `afxdp`, both on the generator's core",
            ),
            Goal::XdpForward => (Part::Ladder, AtLeast(1.2), "", "The same, forwarded in XDP, {}"),
            Goal::MonitorNfqueue => (
                Part::Ladder,
                AtLeast(0.95),
                "",
                "net-monitor through `nfqueue` {} of a null verdict in C through the same queue",
            ),
            Goal::Overload => (
                Part::Curve,
                AtLeast(0.9),
                "",
                "Of three times what net-monitor takes, it delivers {} of its best, all of the router on one core",
            ),
            Goal::Hog => (
                Part::Conditions,
                AtMost(0.1),
                " %",
                "Beside a program at nice 0 on the node's core net-monitor in the real-time class loses {} of 200,000 packets per second",
            ),
            Goal::AddedLatency => (
                Part::Ladder,
                AtMost(15.0),
                " µs",
                "A module in the real-time class adds {} to kernel forwarding at half load, 50th percentile",
            ),
            Goal::ManyContainers => (Part::Many, AtLeast(0.8), "", "100 containers {} of one"),
            Goal::ManyFilters => (Part::Filters, AtLeast(0.95), "", "10,000 filters {} of one"),
            Goal::TwoLanes => {
                (Part::Lanes, AtLeast(1.9), "", "Two lanes on two cores {} of one on one, over packets from memory")
            }
            Goal::ContainerMemory => (Part::Containers, AtMost(6.0), " MB", "Container {} resident with one module"),
            Goal::StateMoves => (Part::Containers, AtMost(20.0), " ms", "1 MB of state out of a module or into one {}"),
            Goal::SetupCached => (Part::Setup, AtMost(10.0), " ms", "SETUP over 2 nodes, module cached, {}"),
            Goal::SetupFetched => (Part::Setup, AtMost(250.0), " ms", "SETUP over 2 nodes, module not cached, {}"),
            Goal::CrowdApi => {
                (Part::Crowd, AtMost(20.0), " ms", "The API answers in {} while 100 users install, 99th percentile")
            }
            Goal::CrowdTimers => {
                (Part::Crowd, AtMost(20.0), " ms", "Timers are late by {} while 100 users install, 99th percentile")
            }
            Goal::ChainDecision => {
                (Part::Strangers, AtMost(200.0), " µs", "The decision about a stranger with a chain of 4 grants {}")
            }
            Goal::ChecklistDecision => (
                Part::Strangers,
                AtMost(5.0),
                " ms",
                "The same with a checklist, {} of processor time beside a cache of 20,000 objects",
            ),
            Goal::StrangersAdmission => {
                (Part::Strangers, AtMost(20.0), " ms", "A node admits each of 1,000 strangers in {}, 99th percentile")
            }
            Goal::Call => (Part::Calls, AtMost(60.0), " ns", "Call of a module {} beyond its own work"),
            Goal::Recovery => (Part::Recovery, AtMost(10.0), " ms", "From trap to recovered {}"),
            Goal::Handshakes => (
                Part::Handshakes,
                AtLeast(100_000.0),
                " per second",
                "GIST handshakes of two engines in memory {}, both on one core",
            ),
            Goal::TlsHandshakes => (
                Part::Signaling,
                AtLeast(1000.0),
                " per second",
                "TLS 1.3 handshakes of netservd with a signaling peer {}, both on one core",
            ),
            Goal::SetupFiveCached => (Part::Signaling, AtMost(50.0), " ms", "SETUP over 5 nodes, module cached, {}"),
            Goal::SetupFiveFetched => {
                (Part::Signaling, AtMost(250.0), " ms", "SETUP over 5 nodes, module not cached, {}")
            }
            Goal::TellThree => (Part::Signaling, AtMost(10.0), " ms", "TELL to a module on 3 nodes and back {}"),
            Goal::MovedRoute => (
                Part::Signaling,
                AtMost(2.0),
                " s",
                "The new path of a moved route has the module {} after the kernel's change",
            ),
            Goal::IdleSession => {
                (Part::Signaling, AtMost(2000.0), " bytes", "An idle session takes {} of a node between two others")
            }
            Goal::RefreshBurst => (
                Part::Signaling,
                AtMost(1.5),
                "",
                "The busiest second of refreshing 100,000 sessions {} of the mean, set up over one round of refreshes",
            ),
            Goal::RefreshBurstAtOnce => (Part::Signaling, AtMost(3.0), "", "The same, set up within 10 s, {}"),
            Goal::Bundle => (
                Part::Ladder,
                AtLeast(0.9),
                "",
                "net-monitor as a bundle through `afxdp` {} of kernel forwarding, 64 bytes, equal cores",
            ),
            Goal::BundleNfqueue => {
                (Part::Ladder, AtLeast(0.75), "", "net-monitor as a bundle through `nfqueue` {} of a null verdict in C")
            }
            Goal::BundleKeepAlive => {
                (Part::Ladder, AtLeast(0.8), "", "keep-alive as a bundle {} of its WebAssembly twin")
            }
            Goal::JvmMemory => {
                (Part::Java, AtMost(45.0), " MB", "Container with JVM, Felix and one module {} resident")
            }
            Goal::BundleSetup => (Part::Java, AtMost(600.0), " ms", "SETUP of a bundle over 2 nodes {}"),
            Goal::BundleSetupWarm => (Part::Java, AtMost(150.0), " ms", "The same where the container runs {}"),
            Goal::ManyJvms => (
                Part::Java,
                AtMost(240.0),
                " MB",
                "Each of 100 containers with a JVM takes {} of the machine's memory, so that they fit into 24 GB",
            ),
            Goal::HttpWasmtime => {
                (Part::Servers, AtLeast(0.9), "", "An HTTP module {} of `wasmtime serve` of the same component")
            }
            Goal::HttpCgi => {
                (Part::Servers, AtLeast(10.0), " ×", "An HTTP module {} a CGI program that a process is made for")
            }
            Goal::HttpInstance => (Part::Servers, AtMost(100.0), " µs", "An instance of an HTTP module {}"),
            Goal::HttpColdStart => (
                Part::Servers,
                AtMost(30.0),
                " ms",
                "Cold start of a component, SETUP to its first answer over HTTP, package there, container new, {}",
            ),
            Goal::IdleServer => (Part::Servers, AtMost(4.0), " MB", "An idle server module {} beyond the container"),
            Goal::InterceptedFlow => {
                (Part::Servers, AtLeast(0.7), "", "One intercepted TCP flow {} of kernel forwarding")
            }
            Goal::InterceptedFlows => {
                (Part::Servers, AtLeast(5000.0), "", "{} intercepted connections at a time are answered")
            }
            Goal::Demo => (Part::Demo, AtMost(30.0), " s", "The demo, warm, {}"),
            Goal::NetservdSize => (Part::Sizes, AtMost(57.0), " MB", "The program netservd {}, also unoptimised"),
            Goal::NetservSize => (Part::Sizes, AtMost(24.0), " MB", "The program netserv {}, also unoptimised"),
            Goal::WorkerSize => (Part::Sizes, AtMost(72.0), " MB", "The program netserv-worker {}, also unoptimised"),
            Goal::JavaSize => (Part::Sizes, AtMost(9.0), " MB", "The Java host with its building blocks {}"),
            Goal::PacketCodeSize => (Part::Sizes, AtMost(96.0), " kB", "The code of each sample packet module {}"),
            Goal::ServerCodeSize => (Part::Sizes, AtMost(200.0), " kB", "The code of each sample server module {}"),
            Goal::ApplicationCodeSize => {
                (Part::Sizes, AtMost(480.0), " kB", "The code of each part of an application among them {}")
            }
        };
        Entry { part, bound, unit, text }
    }
}

impl Serialize for Goal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

/// Returns a bound as people write it: 1.0, 0.97, 15, 20,000.
fn number(value: f64) -> String {
    if value < 2.0 {
        return format!("{value:?}");
    }
    let digits = format!("{value}");
    match digits.len() {
        0..4 => digits,
        length => format!("{},{}", &digits[..length - 3], &digits[length - 3..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_written_as_people_write_them() {
        assert_eq!(
            Goal::Monitor.text(),
            "net-monitor through `afxdp` ≥ 1.0 of kernel forwarding, 64 bytes, equal cores"
        );
        assert_eq!(
            Goal::Handshakes.text(),
            "GIST handshakes of two engines in memory ≥ 100,000 per second, both on one core"
        );
        assert_eq!(Goal::ContainerMemory.text(), "Container ≤ 6 MB resident with one module");
        for (at, goal) in Goal::ALL.into_iter().enumerate() {
            assert_eq!(goal as usize, at, "ALL has every goal once, as they are declared");
            assert!(goal.entry().text.contains("{}"), "{goal:?} shows its bound");
        }
        assert_eq!(Goal::ALL.last(), Some(&Goal::ApplicationCodeSize));
    }
}
