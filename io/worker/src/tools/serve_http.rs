// SPDX-License-Identifier: Apache-2.0
//! `netserv-worker serve-http`: an HTTP module on the developer's own machine, without a sandbox.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use netserv_model::effect::ModuleSlot;
use netserv_model::manifest::ModuleLimits;
use netserv_model::{Refusal, RefusalKind};
use netserv_wire::container::frames::ServerLoad;
use netserv_worker_base::wakeup::Wakeup;
use netserv_worker_server::component::{self, ComponentKind};
use netserv_worker_server::engine::ServerEngine;
use netserv_worker_server::http::service::HttpService;
use netserv_worker_server::http::site::{HttpSite, Version};
use netserv_worker_server::listeners::{Handler, Listeners};
use netserv_worker_server::module::{Module, Profile, Shared};
use netserv_worker_server::{blocks, route, thread, tls};
use netserv_worker_wasm::limits;

use super::compile;

/// What to serve, and where.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The component, which exports `wasi:http/incoming-handler`.
    component: PathBuf,
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// A certificate chain and its key in PEM, for HTTPS.
    #[arg(long, value_name = "FILE")]
    tls: Option<PathBuf>,
    /// Certificate authorities in PEM that the module's own requests trust, beside those of Mozilla's list.
    #[arg(long, value_name = "FILE")]
    authorities: Option<PathBuf>,
    /// A property of the module.
    #[arg(long = "property", value_name = "NAME=VALUE", value_parser = property)]
    properties: Vec<(String, String)>,
    /// Bytes of memory that each request may use.
    #[arg(long, value_name = "BYTES", default_value_t = ModuleLimits::default().memory_bytes)]
    memory: u64,
    /// Requests at a time.
    #[arg(long, value_name = "N", default_value_t = ModuleLimits::default().requests)]
    requests: u32,
}

fn property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a property is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Serves until the process is ended.
///
/// # Errors
/// Those of a node that loads the component, or the port is taken.
pub fn serve(args: &Args) -> Result<(), Refusal> {
    let failed = |error: &dyn ToString| Refusal::new(RefusalKind::NodeFailed, error.to_string());
    let wasm = compile::read_wasm(&args.component)?;
    let engine = Arc::new(ServerEngine::new().map_err(|error| failed(&error))?);
    let component = component::compile(&engine, &wasm, &blocks::all())?;
    if component.kind != ComponentKind::Http {
        let detail = format!("the component is a {} module; this serves http modules", component.kind.as_str());
        return Err(Refusal::new(RefusalKind::AbiMismatch, detail));
    }
    let open =
        |path: &PathBuf| std::fs::File::open(path).map_err(|error| failed(&format!("{}: {error}", path.display())));
    let tls = args.tls.as_ref().map(|path| tls::acceptor(open(path)?)).transpose()?;
    if let Some(path) = &args.authorities {
        open(path)?;
        route::trust(path.clone());
    }
    let module = Arc::new(module(args)?);
    let runtime = thread::runtime().map_err(|error| failed(&error))?;
    runtime.block_on(async {
        let service = Arc::new(HttpService::start(&engine, component, &module).await?);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let handler = Handler::Http(Arc::new(HttpSite::new(Version { service, tls, tls_names: Arc::default() })));
        let mut ports = Listeners::default();
        let port = [args.listen.port()].into();
        ports.open((ModuleSlot(0), &module.name.name), &port, &[args.listen.ip()], &handler)?;
        eprintln!("{scheme}://{} without a sandbox: only for code that you trust", args.listen);
        loop {
            for line in module.take_log() {
                eprintln!("{}: {}", line.level.as_str(), line.text);
            }
            tokio::time::sleep(LOG_PAUSE).await;
        }
    })
}

const LOG_PAUSE: Duration = Duration::from_millis(100);

fn module(args: &Args) -> Result<Module, Refusal> {
    let everywhere = ["tcp", "udp"].map(|text| text.parse().expect("a filter"));
    let network =
        ServerLoad { addresses: vec![args.listen.ip()], connect: everywhere.to_vec(), ..ServerLoad::default() };
    let mut blocks = blocks::all();
    blocks.insert("http-client".to_owned());
    let profile = Profile {
        slot: ModuleSlot(0),
        name: "localhost/module@0.0.0".parse().expect("a name with a version"),
        properties: args.properties.iter().cloned().collect(),
        limits: ModuleLimits {
            memory_bytes: args.memory.min(limits::MEMORY_BYTES_MAX),
            requests: args.requests,
            ..ModuleLimits::default()
        },
        blocks,
        network,
    };
    let wake = Wakeup::new().map_err(|error| Refusal::new(RefusalKind::NodeFailed, error.to_string()))?;
    let shared = Shared::for_tests(&profile.name);
    Ok(Module::new(profile, shared, Arc::new(wake)))
}
