// SPDX-License-Identifier: Apache-2.0
//! The code of a module under test, and what the module is told of itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::{Manifest, ModuleLimits};
use netserv_model::{ModuleRef, Refusal, RefusalKind};
use netserv_wire::container::frames::ServerLoad;
use netserv_worker_base::wakeup::Wakeup;

use crate::blocks;
use crate::component::{self, CheckedComponent, ComponentKind};
use crate::engine::ServerEngine;
use crate::module::{Module, Profile, Shared};

/// What the module under test is told of itself, and may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// Its name and version.
    pub module: ModuleRef,
    /// What it can read.
    pub properties: BTreeMap<String, String>,
    /// What it may use.
    pub limits: ModuleLimits,
    /// The building blocks that it may use.
    pub blocks: BTreeSet<String>,
}

impl HostSettings {
    /// Returns settings with all building blocks, no property, and the usual limits.
    pub fn new(module: ModuleRef) -> HostSettings {
        HostSettings { module, properties: BTreeMap::new(), limits: ModuleLimits::default(), blocks: blocks::all() }
    }

    /// Returns the settings of a manifest's module, some of whose properties have other values.
    pub fn of(manifest: &Manifest, properties: &BTreeMap<String, String>) -> HostSettings {
        let mut all = manifest.properties.clone();
        all.extend(properties.clone());
        HostSettings { properties: all, limits: manifest.limits, ..HostSettings::new(manifest.module()) }
    }

    /// Returns a module that has done nothing.
    pub(super) fn into_module(self) -> Result<Arc<Module>, Refusal> {
        let wake = Arc::new(Wakeup::new().map_err(|error| node_failed(&error))?);
        let shared = Shared::for_tests(&self.module);
        let profile = Profile {
            slot: ModuleSlot(0),
            name: self.module,
            properties: self.properties,
            limits: self.limits,
            blocks: self.blocks,
            network: ServerLoad::default(),
        };
        Ok(Arc::new(Module::new(profile, shared, wake)))
    }
}

/// A component that is compiled for this process.
pub struct TestCode {
    pub(super) engine: Arc<ServerEngine>,
    component: CheckedComponent,
}

impl TestCode {
    /// Compiles a component that may use all building blocks.
    ///
    /// # Errors
    /// Those of a node that loads it.
    pub fn compile(component: &[u8]) -> Result<TestCode, Refusal> {
        TestCode::compile_for(component, &blocks::all())
    }

    /// Takes code of this process's own make for a component that may use all building blocks.
    ///
    /// # Errors
    /// Those of a node that loads it.
    pub fn load(code: File) -> Result<TestCode, Refusal> {
        let engine = Arc::new(ServerEngine::new().map_err(|error| node_failed(&error))?);
        let component = component::load(&engine, code, &blocks::all())?;
        Ok(TestCode { engine, component })
    }

    pub(super) fn compile_for(component: &[u8], blocks: &BTreeSet<String>) -> Result<TestCode, Refusal> {
        let engine = Arc::new(ServerEngine::new().map_err(|error| node_failed(&error))?);
        let component = component::compile(&engine, component, blocks)?;
        Ok(TestCode { engine, component })
    }

    /// Returns what the component does.
    pub fn kind(&self) -> ComponentKind {
        self.component.kind
    }

    /// Returns the component if it does what is wanted.
    pub(super) fn component(&self, wanted: ComponentKind) -> Result<CheckedComponent, Refusal> {
        if self.kind() == wanted {
            return Ok(self.component.clone());
        }
        let (kind, wanted) = (self.kind().as_str(), wanted.as_str());
        Err(Refusal::new(RefusalKind::AbiMismatch, format!("it is a module of kind {kind}, and not {wanted}")))
    }
}

pub(super) fn node_failed(error: &dyn ToString) -> Refusal {
    Refusal::new(RefusalKind::NodeFailed, error.to_string())
}
