// SPDX-License-Identifier: Apache-2.0
//! A user's store, to which nodes write states and from which they fetch them.

use netserv_lab::netns::Lab;
use netserv_model::api::RequestResult;
use netserv_model::request::Outcome;

use super::eventually;

/// A folder on a machine into which PUT writes.
pub struct StateStore {
    address: std::net::Ipv4Addr,
}

impl StateStore {
    /// Returns what a node's configuration says so that it writes to the store.
    pub fn config(lab: &Lab, machine: &str) -> String {
        format!("[fetch]\nschemes = [\"http\"]\nput-hosts = [\"{}:{PORT}\"]\n", lab.v4(machine))
    }

    /// Serves the folder `states` of the lab's directory.
    pub fn open(lab: &mut Lab, machine: &str) -> StateStore {
        let folder = lab.dir().join("states");
        std::fs::create_dir(&folder).unwrap();
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
        lab.start(machine, "states", &mut command).unwrap();
        eventually("the store listens", || {
            let check = ["-z", "-w", "1", "127.0.0.1", &PORT.to_string()];
            lab.command(machine, "nc").args(check).status().unwrap().success()
        });
        StateStore { address: lab.v4(machine) }
    }

    /// Returns the URL of a state.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}:{PORT}/{name}", self.address)
    }
}

/// Returns what a node did with a request.
pub fn outcome_of(result: &RequestResult, node: &str) -> Outcome {
    let report = result.nodes.iter().find(|report| report.node.as_str() == node);
    report.unwrap_or_else(|| panic!("{node} says nothing: {result:?}")).outcome.clone()
}

const PORT: u16 = 8085;
