// SPDX-License-Identifier: Apache-2.0
//! Where the states of modules are on their way between nodes: a folder on a machine into which PUT writes.

use std::net::Ipv4Addr;

use anyhow::Result;

use crate::netns::Lab;

/// The folder `states` of the lab's directory, served by a machine.
pub struct StateStore {
    address: Ipv4Addr,
}

impl StateStore {
    /// Returns what a node's configuration says so that it writes to the store, and fetches by HTTP.
    pub fn config(lab: &Lab, machine: &str) -> String {
        format!("[fetch]\nschemes = [\"http\"]\nput-hosts = [\"{}:{PORT}\"]\n", lab.v4(machine))
    }

    /// Serves it.
    ///
    /// # Errors
    /// The server does not start.
    pub fn open(lab: &mut Lab, machine: &str) -> Result<StateStore> {
        let folder = lab.dir().join("states");
        std::fs::create_dir(&folder)?;
        let script = format!(
            "import http.server, os\n\
             class Store(http.server.SimpleHTTPRequestHandler):\n\
             \x20   def do_PUT(self):\n\
             \x20       data = self.rfile.read(int(self.headers['Content-Length']))\n\
             \x20       open(self.translate_path(self.path), 'wb').write(data)\n\
             \x20       self.send_response(201); self.end_headers()\n\
             os.chdir('{}')\n\
             http.server.ThreadingHTTPServer(('', {PORT}), Store).serve_forever()\n",
            folder.display()
        );
        let mut command = lab.command(machine, "python3");
        command.args(["-c", &script]);
        lab.start(machine, "states", &mut command)?;
        let port = PORT.to_string();
        let listens = |lab: &Lab| lab.run(machine, "nc", &["-z", "-w", "1", "127.0.0.1", &port]).is_ok();
        lab.wait_for_start((machine, "states"), "listen", listens)?;
        Ok(StateStore { address: lab.v4(machine) })
    }

    /// Returns the URL of a state.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}:{PORT}/{name}", self.address)
    }
}

const PORT: u16 = 8085;
