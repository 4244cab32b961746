// SPDX-License-Identifier: Apache-2.0
//! What all containers of a node are made of.

use netserv_model::Flavour;
use seccompiler::BpfProgram;

use super::orders::Orders;
use crate::protocol::step::{Step as _, StepError, step_error};
use crate::protocol::{MediaSetup, Setup};
use crate::sandbox::rootfs::media::MediaRoot;
use crate::sandbox::rootfs::{self, Template};
use crate::sandbox::seccomp::{self, once};

/// What all containers of a node have in common.
#[derive(Debug)]
pub(super) struct Kit {
    pub(super) wasm: Profile,
    /// Or why there are no Java workers.
    pub(super) osgi: Result<Profile, String>,
    /// Or why there are no media jobs.
    pub(super) media: Result<MediaKit, String>,
    /// The filter by which the worker's program is the last that is executed.
    pub(super) once: BpfProgram,
}

impl Kit {
    /// Builds what containers are made of. A node whose Java is not as it should be runs Wasm all the same.
    pub(super) fn build(setup: &Setup) -> Result<Kit, StepError> {
        rootfs::isolate().step("make mounts private")?;
        let template = rootfs::wasm(setup).step("build the root")?;
        let wasm = Profile::new(Flavour::Wasm, template)?;
        let osgi = match &setup.jvm {
            None => Err("this node has no Java".to_owned()),
            Some(jvm) => match rootfs::osgi(&jvm.root, jvm) {
                Ok(template) => Ok(Profile::new(Flavour::Osgi, template)?),
                Err(error) => Err(error.to_string()),
            },
        };
        let media = match &setup.media {
            None => Err("this node has no ffmpeg".to_owned()),
            Some(media) => MediaKit::new(media).map_err(|error| error.detail),
        };
        let once = once::filter().map_err(|error| step_error("compile the seccomp filter", &error))?;
        Ok(Kit { wasm, osgi, media, once })
    }

    pub(super) fn profile(&self, orders: &Orders) -> Result<&Profile, StepError> {
        if orders.media.is_some() {
            return Ok(&self.media()?.profile);
        }
        match orders.flavour {
            Flavour::Wasm => Ok(&self.wasm),
            Flavour::Osgi => self.osgi.as_ref().map_err(|reason| step_error("prepare an osgi worker", reason)),
        }
    }

    pub(super) fn media(&self) -> Result<&MediaKit, StepError> {
        self.media.as_ref().map_err(|reason| step_error("prepare a media job", reason))
    }
}

/// What all media jobs have in common.
#[derive(Debug)]
pub(super) struct MediaKit {
    pub(super) profile: Profile,
    pub(super) root: MediaRoot,
}

impl MediaKit {
    pub(super) fn new(setup: &MediaSetup) -> Result<MediaKit, StepError> {
        let root = MediaRoot::build(setup).step("build the root")?;
        let filters = seccomp::media::filters();
        let filters = filters.map_err(|error| step_error("compile the seccomp filter", &error))?;
        let profile = Profile { template: root.template.clone(), filters, network_filters: vec![] };
        Ok(MediaKit { profile, root })
    }
}

/// What all workers of one flavour have in common.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) template: Template,
    /// Loaded in containers without a network.
    pub(super) filters: Vec<BpfProgram>,
    /// Loaded in containers with one.
    pub(super) network_filters: Vec<BpfProgram>,
}

impl Profile {
    pub(super) fn new(flavour: Flavour, template: Template) -> Result<Profile, StepError> {
        let compile = |network| {
            let filters = seccomp::filters(flavour, network);
            filters.map_err(|error| step_error("compile the seccomp filter", &error))
        };
        Ok(Profile { template, filters: compile(false)?, network_filters: compile(true)? })
    }
}
