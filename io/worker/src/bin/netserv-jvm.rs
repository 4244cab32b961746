// SPDX-License-Identifier: Apache-2.0
//! The process inside a service container that runs OSGi bundles on a JVM.

use clap::{Parser, Subcommand};
use netserv_worker::tools::test::{bundle, jobs};
use netserv_worker_jvm as jvm;

#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run bundles inside a service container; started by netservd.
    Serve(jvm::serve::Args),
    /// Write the classes of the host as the JVM maps them, so that it starts in less time.
    Archive(jvm::archive::Args),
    /// Run a bundle on recorded packets, and print what it did as JSON.
    Test(bundle::Args),
}

fn main() {
    let result = match Cli::parse().command {
        Command::Serve(args) => jvm::packet_thread(|| jvm::serve::serve(&args)),
        Command::Archive(args) => jvm::packet_thread(|| jvm::archive::archive(&args)),
        Command::Test(args) => jvm::leave(jobs::exit_code(jvm::packet_thread(|| bundle::run(&args)))),
    };
    match result {
        Ok(()) => jvm::leave(0),
        Err(error) => {
            eprintln!("netserv-jvm: {error}");
            jvm::leave(1)
        }
    }
}
