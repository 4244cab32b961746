// SPDX-License-Identifier: Apache-2.0
//! Which drivers there are, which of them work on this machine, and how to open one.

use std::fmt;
use std::str::FromStr;

use netserv_model::api::DeviceInfo;
use netserv_plane::{Driver, DriverConfig, DriverError, dummy};
use netserv_plane_afxdp::{self as afxdp, Afxdp};
use netserv_plane_nfqueue::{self as nfqueue, Nfqueue, rules};

/// A kind of forwarding plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DriverKind {
    /// AF_XDP sockets, packets taken off the devices by an XDP program.
    Afxdp,
    /// In memory, for tests; never chosen by itself.
    Dummy,
    /// The kernel's own forwarding, packets taken out by netfilter.
    Nfqueue,
}

/// Whether a driver works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The driver.
    pub kind: DriverKind,
    /// `Err` with the reason in a form for people, if it does not.
    pub usable: Result<(), String>,
    /// How it would serve each device, as far as can be told without touching it; empty for planes that serve none by
    /// themselves.
    pub devices: Vec<DeviceInfo>,
    /// What people should know, a sentence each: devices that it would leave alone and why, what is slower than it could
    /// be.
    pub notes: Vec<String>,
}

impl DriverKind {
    /// Every kind, in the order in which `auto` tries them.
    pub const ALL: [DriverKind; 3] = [DriverKind::Afxdp, DriverKind::Nfqueue, DriverKind::Dummy];

    /// Returns the name used in configuration files.
    pub fn as_str(self) -> &'static str {
        match self {
            DriverKind::Afxdp => "afxdp",
            DriverKind::Dummy => "dummy",
            DriverKind::Nfqueue => "nfqueue",
        }
    }

    /// Finds out whether the driver works here, without leaving anything behind.
    pub fn probe(self) -> Probe {
        let usable = match self {
            DriverKind::Afxdp => afxdp::probe().map_err(|error| error.to_string()),
            DriverKind::Dummy => Ok(()),
            DriverKind::Nfqueue => nfqueue::probe().map_err(|error| error.to_string()),
        };
        let (devices, notes) = match self {
            DriverKind::Afxdp => afxdp::prospects(),
            DriverKind::Dummy | DriverKind::Nfqueue => (Vec::new(), Vec::new()),
        };
        Probe { kind: self, usable, devices, notes }
    }

    /// Opens the driver.
    ///
    /// # Errors
    /// Says what is lacking.
    pub fn open(self, config: &DriverConfig) -> Result<Box<dyn Driver>, DriverError> {
        let mut lanes = self.open_lanes(config, 1)?;
        Ok(lanes.swap_remove(0))
    }

    /// Opens the driver in several lanes, each for a thread of its own; lane 0 first.
    ///
    /// The packets of a flow all come by one lane, and those of a lane are finished there. All lanes have the same
    /// [`Driver::filters`]. Lane 0 alone is asked to [`Driver::intercept`] and for its [`Driver::devices`], and counts what
    /// the plane as a whole does. Where the plane cannot have as many lanes as are wanted, there are fewer, at least one.
    /// Lanes may be dropped in any order.
    ///
    /// # Errors
    /// Says what is lacking.
    pub fn open_lanes(self, config: &DriverConfig, lanes: usize) -> Result<Vec<Box<dyn Driver>>, DriverError> {
        Ok(match self {
            DriverKind::Afxdp => Afxdp::open_lanes(config, lanes)?.into_iter().map(boxed).collect(),
            DriverKind::Dummy => dummy::Dummy::lanes(lanes).0.into_iter().map(boxed).collect(),
            DriverKind::Nfqueue => Nfqueue::open_lanes(config, lanes)?.into_iter().map(boxed).collect(),
        })
    }
}

fn boxed(driver: impl Driver + 'static) -> Box<dyn Driver> {
    Box::new(driver)
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for DriverKind {
    type Err = DriverError;

    fn from_str(name: &str) -> Result<DriverKind, DriverError> {
        let names = || format!("there are auto, {}", DriverKind::ALL.map(DriverKind::as_str).join(", "));
        let kind = DriverKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        kind.ok_or_else(|| DriverError::NoDriver { name: name.chars().take(40).collect(), why: names() })
    }
}

/// A driver and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The driver.
    pub kind: DriverKind,
    /// Why this one, in a form for people.
    pub why: String,
}

/// Whether `auto` may take a driver on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitness {
    /// The driver.
    pub kind: DriverKind,
    /// `Err` with what speaks against it, in a form for people.
    pub fits: Result<(), String>,
    /// What people should know of it, as in [`Probe::notes`].
    pub notes: Vec<String>,
}

/// Returns which drivers `auto` may take, in its order, after trying each.
///
/// A driver that leads packets past rules of the kernel's packet filter does not fit where there are such rules. To be
/// called before a driver is opened: a device that is taken cannot be tried.
pub fn survey() -> Vec<Fitness> {
    let kinds = DriverKind::ALL.into_iter().filter(|kind| *kind != DriverKind::Dummy);
    let look = |kind: DriverKind| {
        let Probe { usable, notes, .. } = kind.probe();
        Fitness { kind, fits: usable.and_then(|()| keeps_rules(kind)), notes }
    };
    kinds.map(look).collect()
}

/// Returns the driver of this name; for `auto`, the first one that fits.
///
/// # Errors
/// Says which names there are, or why each of the drivers does not fit.
pub fn choose(name: &str, survey: &[Fitness]) -> Result<Choice, DriverError> {
    if name != "auto" {
        return Ok(Choice { kind: name.parse()?, why: "the configuration says so".to_owned() });
    }
    let mut reasons: Vec<String> = Vec::new();
    for Fitness { kind, fits, .. } in survey {
        match fits {
            Ok(()) if reasons.is_empty() => {
                return Ok(Choice { kind: *kind, why: "the best that works here".to_owned() });
            }
            Ok(()) => return Ok(Choice { kind: *kind, why: format!("not {}", reasons.join("; not ")) }),
            Err(reason) => reasons.push(format!("{kind}, because {reason}")),
        }
    }
    Err(DriverError::NoDriver { name: name.to_owned(), why: format!("not {}", reasons.join("; not ")) })
}

fn keeps_rules(kind: DriverKind) -> Result<(), String> {
    let passed_by = match kind {
        DriverKind::Afxdp => rules::foreign::first().map_err(|error| error.to_string())?,
        DriverKind::Dummy | DriverKind::Nfqueue => None,
    };
    passed_by.map_or(Ok(()), |rule| {
        let fix = format!("set dataplane.driver = \"{kind}\" if they do not matter");
        Err(format!("packets for modules would pass by rules of this machine's packet filter, such as {rule}; {fix}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_chosen_by_name() {
        assert_eq!(choose("dummy", &[]).unwrap().kind, DriverKind::Dummy);
        assert_eq!(choose("nfqueue", &[]).unwrap().kind, DriverKind::Nfqueue);
        let unknown = choose("quantum", &[]).unwrap_err().to_string();
        assert_eq!(unknown, "no driver `quantum` here: there are auto, afxdp, nfqueue, dummy");
    }

    #[test]
    fn auto_takes_the_first_that_fits_and_says_why() {
        let plane =
            |kind, fits: Result<(), &str>| Fitness { kind, fits: fits.map_err(str::to_owned), notes: Vec::new() };
        let good = [plane(DriverKind::Afxdp, Ok(())), plane(DriverKind::Nfqueue, Ok(()))];
        let choice = choose("auto", &good).unwrap();
        assert_eq!((choice.kind, choice.why.as_str()), (DriverKind::Afxdp, "the best that works here"));
        let poor = [plane(DriverKind::Afxdp, Err("it is old")), plane(DriverKind::Nfqueue, Ok(()))];
        let choice = choose("auto", &poor).unwrap();
        assert_eq!((choice.kind, choice.why.as_str()), (DriverKind::Nfqueue, "not afxdp, because it is old"));
        let none = choose("auto", &poor[..1]).unwrap_err().to_string();
        assert_eq!(none, "no driver `auto` here: not afxdp, because it is old");
    }

    /// What fits depends on who runs this; either way nobody gets a node that only looks like one.
    #[test]
    fn the_dummy_is_never_chosen_by_itself() {
        assert!(survey().iter().all(|plane| plane.kind != DriverKind::Dummy));
        assert_eq!(DriverKind::Dummy.probe().usable, Ok(()));
        assert_eq!(DriverKind::Dummy.open(&DriverConfig::new("test")).unwrap().name(), "dummy");
        let lanes = |wanted| DriverKind::Dummy.open_lanes(&DriverConfig::new("test"), wanted).unwrap().len();
        assert_eq!((lanes(0), lanes(4)), (1, 4));
    }
}
