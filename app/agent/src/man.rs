// SPDX-License-Identifier: Apache-2.0
//! The manual page, made of the command line's own description; the test keeps `docs/man/netserv-agent.8` what it says.

use std::path::Path;

use clap::CommandFactory as _;
use netserv_manual::{Page, tables};

use crate::Arguments;
use crate::config::Config;

/// What the page says beyond the command line: sections of terms with their texts.
const SECTIONS: [(&str, &[(&str, &str)]); 4] = [
    (
        "SIGNALS",
        &[
            ("SIGTERM, SIGINT", "Stop. What is deployed stays until its lease ends, or the agent comes back."),
            (
                "SIGHUP",
                "Read the configuration again; if it is wrong, all stays as it was, and the log says why. `netserv agent reload` does the same, and shows what became of each rule. `user`, `state-dir`, `socket`, `nearest` and `page` need a restart.",
            ),
        ],
    ),
    (
        "EXIT STATUS",
        &[
            ("0", "told to stop; with --check, the configuration is right"),
            ("1", "failed, with the cause on standard error"),
            ("2", "the command line is wrong"),
        ],
    ),
    (
        "FILES",
        &[
            ("/etc/netserv/agent.toml", "The configuration."),
            ("/var/lib/netserv-agent", "What is deployed, and which rules are switched off (state-dir)."),
            ("/run/netserv/agent.sock", "The HTTP API, for the owner and the group (socket)."),
        ],
    ),
    (
        "SEE ALSO",
        &[
            ("netserv-agent(1)", "the command that looks at the agent, switches rules and has them read again"),
            ("netservd(1)", "the node by which the agent sends its requests"),
            ("docs/agent.md", "rules, with examples"),
        ],
    ),
];

#[test]
fn the_manual_page_is_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (name, section, command) = ("netserv-agent", 8, Arguments::command());
    let (synopsis, tables) = ("[\\fIOPTIONS\\fR]", tables(&schemars::schema_for!(Config).to_value()));
    Page { name, section, synopsis, command, tables, sections: &SECTIONS }.check(&docs);
}
