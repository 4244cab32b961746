// SPDX-License-Identifier: Apache-2.0
//! `netserv watch`.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use netserv_api::{EventLine, EventRecord, MissedEvents};
use netserv_model::control::encode_body;
use netserv_model::notify::{Notify, NotifyEvent};
use netserv_model::{ModuleName, NodeId, SessionId, UserId};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::{Exit, Failure, OrFail, one_line};
use crate::output::{Output, Style};
use crate::report::count;
use crate::units::parse_duration;
use netserv_api::{Client, Lines};

/// What `--help` shows at the end.
const EXAMPLE: &str = "\
Events:
  route-moved       the path leads to other nodes after NODE, and these have the module
  route-lost        NODE has lost the next node, and continues to look for one
  lease-ended       the lease on NODE ended early, for example because of NODE's operator
  module-replaced   another session's SETUP changed the module's version or properties on NODE
  module-failed     the module failed too often on NODE, and does not run there for a while
  module-message    the module on NODE sent a message
  node-draining     NODE is about to stop; its modules start with it again
  node-maintenance  NODE's operator drains it, and NODE renews no lease: move the module

Nodes send these events to the node or host whose clients sent the SETUP, so run the command there. It also shows events of modules
on this node itself. Without --since, it shows only new events. The node keeps its last 1,024 events while it runs.

Example:
  $ netserv watch --module example.org/net-monitor
  watching, ends with Ctrl-C
  2026-11-21T07:24:45Z  route-moved    n1  janedoe  example.org/net-monitor  nb comes after n1 now; further on: nb, nc";

/// Show events of modules and nodes along paths as they happen
///
/// Prints a line for each event: a path that moved, a lease that ended early, a module that failed, a node that is
/// about to stop. Ends at Ctrl-C, or at the limit of --count or --timeout. If netservd ends, the command fails and
/// says how to continue.
#[derive(Args)]
#[command(after_long_help = EXAMPLE)]
pub struct Watch {
    /// Show only events of this user's modules
    #[arg(long, value_name = "NAME")]
    user: Option<UserId>,
    /// Show only events of this module, of any version
    #[arg(long, value_name = "NAME")]
    module: Option<ModuleName>,
    /// Show only events of this session's SETUPs
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// Show only these events; may be repeated, or separated by commas
    #[arg(long, value_name = "WORD", value_delimiter = ',', value_parser = words())]
    event: Vec<NotifyEvent>,
    /// Start with the event of this sequence number; 0 shows all events that the node keeps [default: new events
    /// only]
    #[arg(long, value_name = "NUMBER")]
    since: Option<u64>,
    /// End after this many events; exit with 6 if fewer come within --timeout
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

impl Watch {
    /// Shows events until it is interrupted, or enough came.
    ///
    /// # Errors
    /// The node cannot be reached, refuses, or goes away.
    pub async fn run(self, client: &Client, output: &mut Output) -> Result<Exit, Failure> {
        // From before the first line on.
        let mut interrupts =
            signal(SignalKind::interrupt()).or_fail("cannot wait for signals", "report this as a bug")?;
        let mut lines = client.lines(&self.path()).await?;
        output.note(self.announcement());
        let mut seen = Seen { events: 0, next: self.since };
        let end = async {
            match self.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let timed_out = tokio::select! {
            shown = self.show(&mut lines, &mut seen, output) => {
                shown?;
                false
            }
            _ = interrupts.recv() => false,
            () = end => true,
        };
        output.note(format!("{} seen", count(seen.events, "event")));
        let is_less = self.count.is_some_and(|wanted| seen.events < wanted);
        Ok(if timed_out && is_less { Exit::Incomplete } else { Exit::Done })
    }

    /// Shows lines until there are enough, or nobody reads them.
    async fn show(&self, lines: &mut Lines, seen: &mut Seen, output: &mut Output) -> Result<(), Failure> {
        while self.count.is_none_or(|wanted| seen.events < wanted) && !output.is_closed() {
            let line = lines.next().await.map_err(|failure| seen.broken_off(&failure.cause))?;
            let Some(line) = line else { return Err(seen.broken_off("it ended the stream")) };
            let line: EventLine = serde_json::from_str(&line)
                .or_fail("an event is not understood", "use a netserv and a netservd of one version")?;
            seen.take(&line);
            write(&line, output)?;
        }
        Ok(())
    }

    fn path(&self) -> String {
        let mut path = "/v1/events?follow=true".to_owned();
        let user = self.user.as_ref().map(|user| ("user", user.to_string()));
        let module = self.module.as_ref().map(|module| ("module", module.to_string()));
        let session = self.session.map(|session| ("session", session.to_string()));
        let since = self.since.map(|since| ("since", since.to_string()));
        let words: Vec<&str> = self.event.iter().map(|event| event.as_str()).collect();
        let events = (!words.is_empty()).then(|| ("event", words.join(",")));
        for (name, value) in user.into_iter().chain(module).chain(session).chain(since).chain(events) {
            path.push_str(&format!("&{name}={value}"));
        }
        path
    }

    fn announcement(&self) -> String {
        let ends = self.count.map(|wanted| format!("after {} or ", count(wanted, "event"))).unwrap_or_default();
        let time = self.timeout.map(|time| crate::units::format_seconds(time.as_secs()));
        let time = time.map(|time| format!("after {time} or ")).unwrap_or_default();
        format!("watching, ends {ends}{time}with Ctrl-C")
    }
}

/// What was shown so far.
struct Seen {
    events: u64,
    /// With which sequence number to go on, if that is known.
    next: Option<u64>,
}

impl Seen {
    fn take(&mut self, line: &EventLine) {
        match line {
            EventLine::News(record) => (self.events, self.next) = (self.events + 1, Some(record.sequence + 1)),
            EventLine::Missed(missed) => self.next = Some(missed.sequence),
        }
    }

    fn broken_off(&self, why: &str) -> Failure {
        let since = self.next.map(|next| format!(" --since {next}")).unwrap_or_default();
        let fix = format!("see whether it runs: `netserv node status`; then go on with `netserv watch{since}`");
        Failure::new(format!("netservd went away: {why}"), fix).with_exit(Exit::Unreachable)
    }
}

fn write(line: &EventLine, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json_line(line);
    }
    match line {
        EventLine::News(record) => {
            let text = event(record, output);
            output.line(text);
        }
        EventLine::Missed(MissedEvents { count: missed, .. }) => {
            let text = match missed {
                Some(missed) => format!("{} before this are not kept any more", count(*missed, "event")),
                None => "netservd was started anew; what it had told before is gone".to_owned(),
            };
            let text = output.paint(Style::Warn, &text);
            output.line(text);
        }
    }
    Ok(())
}

fn event(record: &EventRecord, output: &Output) -> String {
    let Notify { user, module, node, event, nodes, detail, topic, body, .. } = &record.notify;
    let style = match event {
        NotifyEvent::RouteMoved | NotifyEvent::ModuleMessage => Style::Good,
        NotifyEvent::RouteLost
        | NotifyEvent::NodeDraining
        | NotifyEvent::NodeMaintenance
        | NotifyEvent::ModuleReplaced => Style::Warn,
        NotifyEvent::LeaseEnded | NotifyEvent::ModuleFailed => Style::Bad,
    };
    let word = output.paint(style, &format!("{:13}", event.as_str()));
    let nodes: Vec<&str> = nodes.iter().map(NodeId::as_str).collect();
    let further = if nodes.is_empty() { String::new() } else { format!("; further on: {}", nodes.join(", ")) };
    let said = topic.as_ref().map(|topic| format!("{topic}: {}", said(body))).unwrap_or_default();
    format!("{}  {word}  {node}  {user}  {module}  {}{said}{further}", record.time, one_line(detail))
}

/// Returns a module's message for people: as text, or in base64 if it is none.
fn said(body: &[u8]) -> String {
    std::str::from_utf8(body).map_or_else(|_| format!("base64 {}", encode_body(body)), one_line)
}

/// Parses the word of an event.
fn words() -> impl TypedValueParser<Value = NotifyEvent> {
    let words = NotifyEvent::ALL.map(NotifyEvent::as_str);
    PossibleValuesParser::new(words).try_map(|word| NotifyEvent::from_word(&word).ok_or("no event"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::{Cli, Command};

    fn path(arguments: &str) -> String {
        let cli = Cli::try_parse_from(arguments.split(' ')).ok().unwrap();
        let Command::Watch(watch) = cli.command else { panic!("{arguments} is no watch") };
        watch.path()
    }

    #[test]
    fn arguments_become_a_query() {
        assert_eq!(path("netserv watch"), "/v1/events?follow=true");
        let session = "01".repeat(16);
        let all = format!(
            "netserv watch --user jane --module example.org/m --session {session} --event route-moved,lease-ended --event \
             route-lost --since 7"
        );
        let query = format!(
            "user=jane&module=example.org/m&session={session}&since=7&event=route-moved,lease-ended,route-lost"
        );
        assert_eq!(path(&all), format!("/v1/events?follow=true&{query}"));
        assert!(Cli::try_parse_from(["netserv", "watch", "--event", "rout-moved"]).is_err());
    }
}
