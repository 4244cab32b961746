// SPDX-License-Identifier: Apache-2.0
//! `./dev demo --app stranger`: users whom no configuration names. One is let in by the holder of its prefixes, by a checklist of the RPKI, one
//! by its address itself, and one by a clearinghouse's grant that somebody passed on; a fourth is refused. The first goes when its
//! holder's certificate is revoked, while phones send.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use ipnet::IpNet;
use netserv_authority::digest_of_grant;
use netserv_model::api::RequestResult;
use netserv_model::evidence::grants_in;
use netserv_model::request::Outcome;
use netserv_model::{RefusalKind, UnixTime};
use netserv_rpki_tree::Tree;

use super::telling::{request_timeout, title};
use super::{check_installed, echo_once, ensure_programs, phones, show};
use crate::netns::Lab;
use crate::node::{FILES_ALLOWED, LabUser};
use crate::patience::wait_for;
use crate::stranger::{Stranger, grant};
use crate::topology::Topology;

/// Programs of others that it runs, with their Debian packages.
const PROGRAMS: [(&str, &str); 4] = [
    ("/usr/sbin/nginx", "nginx"),
    ("/usr/sbin/kamailio", "kamailio"),
    ("/usr/bin/sipp", "sip-tester"),
    ("/bin/nc", "netcat-openbsd"),
];
/// How often nodes look at a checklist again, and some time to remove what depends on it.
const REVOKED_WAIT: Duration = Duration::from_secs(45);
/// The trust anchor of the tree, whose number the crate gives.
const ANCHOR: usize = 0;

/// Shows it.
///
/// # Errors
/// Something did not do what the demo shows; the error says what.
pub fn run() -> Result<()> {
    ensure_programs(&PROGRAMS)?;
    let begun = Instant::now();
    title("The network: no node's configuration names a user");
    let mut net = Strangers::up()?;
    let before = phones(&net.lab)?;

    title(
        "By a checklist: the holder of the addresses signs a grant's digest with its certificate of the RPKI (RFC 9323)",
    );
    let phoning = stranger(&net.lab, "phoning")?;
    let grant = net.checked_grant(&phoning)?;
    println!("  netserv setup keep-alive … --grant {} --checklist {}", shown(&grant.0), shown(&grant.1));
    let result = set_up(&net.lab, &phoning, "keep-alive", 5060, &["--grant", &grant.0, "--checklist", &grant.1])?;
    show(&result);
    check_installed(&result)?;
    let during = phones(&net.lab)?;
    ensure!(before.reached > 0 && during.reached == 0, "{} keep-alives reached the server", during.reached);

    title("By the address itself: what lies at its web server is for this key (the paper's reverse routability)");
    let owner = stranger(&net.lab, "owner")?;
    let proof = proof(&net.lab, &owner)?;
    println!("  netserv setup echo … --proof {}", shown(&proof));
    let result = set_up(&net.lab, &owner, "echo", 44444, &["--proof", &proof])?;
    show(&result);
    check_installed(&result)?;
    echo_once(&net.lab)?;

    title("By a grant: a clearinghouse gives a provider rights, and the provider passes a part of them on");
    let tenant = stranger(&net.lab, "tenant")?;
    let chain = net.delegated_grant(&tenant)?;
    println!("  netserv setup echo … --grant {}", shown(&chain));
    let result = set_up(&net.lab, &tenant, "echo", 44445, &["--grant", &chain])?;
    show(&result);
    check_installed(&result)?;

    title("A fourth has a grant of nobody whom the operators trust");
    let fourth = stranger(&net.lab, "fourth")?;
    let made_up = net.grant(&fourth.key, &fourth_issuer(&net.lab)?, None, &[])?;
    let result = set_up(&net.lab, &fourth, "echo", 44446, &["--grant", &made_up])?;
    show(&result);
    let is_refused =
        |outcome: &Outcome| matches!(outcome, Outcome::Refused(refusal) if refusal.kind == RefusalKind::BadProof);
    ensure!(result.nodes.iter().all(|node| is_refused(&node.outcome)), "it is let in: {:?}", result.nodes);

    title("netserv node user list, at n1");
    let listed = net.lab.netserv("n1", &["node", "user", "list"])?;
    String::from_utf8_lossy(&listed.stdout).lines().for_each(|line| println!("  {line}"));

    title("The holder's certificate is revoked, while phones send");
    let revoked = Instant::now();
    net.revoke()?;
    let is_gone = || ["n1", "n2"].iter().all(|node| !phoning.is_on(&net.lab, node).unwrap_or(true));
    let mut rounds = 0;
    let waited = wait_for("both nodes to remove the first one's module", REVOKED_WAIT, || {
        rounds += 1;
        phones(&net.lab).is_ok() && is_gone()
    });
    waited.map_err(|gave_up| gave_up.seeing(net.lab.log("n1", "netservd")))?;
    println!("  gone {:.0} s after the revocation, in round {rounds} of the phones", revoked.elapsed().as_secs_f64());
    let after = phones(&net.lab)?;
    ensure!(after.reached == before.reached, "{} keep-alives reached the server after", after.reached);
    ensure!(owner.is_on(&net.lab, "n2")? && tenant.is_on(&net.lab, "n2")?, "the other two lost theirs");
    println!("  the other two have theirs still\n\n  the whole demo: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// A network whose operators let strangers in, and who vouches for them.
struct Strangers {
    lab: Lab,
    clearinghouse: LabUser,
    tree: Tree,
    /// The holder's number in the tree.
    holder: usize,
}

impl Strangers {
    fn up() -> Result<Strangers> {
        let mut lab = Lab::up(Topology::two_nodes())?;
        let sender = lab.v4("sender");
        println!("  sender {sender} ── n1 ── r (plain router) ── n2 ── receiver {}", lab.v4("receiver"));
        let clearinghouse = lab.user("clearinghouse", &[])?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
        let mut tree = Tree::new(UnixTime::from_secs(now));
        let held = tree.certificate(&[own(&lab)]);
        let holder = tree.authority(ANCHOR, "holder", &held);
        let (cache, tal) = (lab.dir().join("rpki"), lab.dir().join("lab.tal"));
        std::fs::write(&tal, tree.locator())?;
        netserv_rpki_tree::write(&tree.publish(), &cache)?;
        let trust = format!(
            "{FILES_ALLOWED}\n[class.guest]\nmodules-max = 2\n[[issuer]]\nname = \"clearinghouse\"\nkeys = [\"{}\"]\n\
             prefixes = [\"{}\"]\nclass = \"guest\"\n[admission]\naddress-class = \"guest\"\nrpki-class = \"guest\"\n\
             [rpki]\ncache = {cache:?}\ntals = [{tal:?}]\n",
            clearinghouse.public,
            own(&lab)
        );
        for node in ["n1", "n2"] {
            lab.start_netservd(node, "node", &[], &trust)?;
        }
        lab.start_netservd("sender", "host", &[], "")?;
        lab.serve_http("sender")?;
        lab.start_kamailio("sender")?;
        println!("  n1 and n2 trust a clearinghouse, addresses that vouch for themselves, and the RPKI");
        Ok(Strangers { lab, clearinghouse, tree, holder })
    }

    /// Makes a grant that the holder of the sender's address names in a checklist; returns both files.
    fn checked_grant(&mut self, to: &Stranger) -> Result<(String, String)> {
        let issuer = self.lab.user("holder", &[])?;
        let grant = self.grant(&to.key, &issuer, None, &[])?;
        let first = grants_in(&std::fs::read_to_string(&grant)?).into_iter().next().context("no grant")?;
        let checklist = self.tree.checklist(&[own(&self.lab)], digest_of_grant(&first));
        let file = self.lab.dir().join("phoning.sig");
        std::fs::write(&file, self.tree.sign(self.holder, &checklist))?;
        self.publish()?;
        Ok((grant, file.to_string_lossy().into_owned()))
    }

    /// Has the clearinghouse grant a provider something, who passes it on.
    fn delegated_grant(&self, to: &Stranger) -> Result<String> {
        let provider = self.lab.user("provider", &[])?;
        let first = self.grant(&provider, &self.clearinghouse, None, &["--delegations", "1"])?;
        self.grant(&to.key, &provider, Some(&first), &["--port", "44445"])
    }

    fn grant(&self, to: &LabUser, by: &LabUser, from: Option<&str>, args: &[&str]) -> Result<String> {
        let (verb, prefix) = (if from.is_some() { "delegate" } else { "issue" }, own(&self.lab).to_string());
        println!("  netserv grant {verb} --to {}… --prefix {prefix}", &to.public[..16]);
        grant(&self.lab, by, to, from, &[&["--prefix", &prefix], args].concat())
    }

    /// Has the registry revoke the holder's certificate.
    fn revoke(&mut self) -> Result<()> {
        self.tree.revoke(self.holder);
        self.publish()
    }

    fn publish(&mut self) -> Result<()> {
        netserv_rpki_tree::write(&self.tree.publish(), &self.lab.dir().join("rpki"))?;
        Ok(())
    }
}

/// Makes a user whom no configuration names.
fn stranger(lab: &Lab, name: &str) -> Result<Stranger> {
    let stranger = Stranger::new(lab, name)?;
    println!("  {name} is {} by its key", stranger.user);
    Ok(stranger)
}

/// Has a stranger ask for a module that sees what comes to a port of the sender.
fn set_up(lab: &Lab, who: &Stranger, module: &str, port: u16, evidence: &[&str]) -> Result<RequestResult> {
    let (filter, timeout) = (format!("udp dst {} port {port}", own(lab)), request_timeout());
    who.set_up(lab, module, &filter, &[&["--timeout", &timeout], evidence].concat())
}

/// Makes a proof that the sender's web server confirms.
fn proof(lab: &Lab, who: &Stranger) -> Result<String> {
    let address = lab.v4("sender").to_string();
    println!("  netserv prove address {address} --web-root …");
    who.proof(lab, &address, Some(&lab.dir().join("www")))
}

fn fourth_issuer(lab: &Lab) -> Result<LabUser> {
    lab.user("nobody", &[])
}

/// The sender's address, of which all of it is about.
fn own(lab: &Lab) -> IpNet {
    IpNet::from(std::net::IpAddr::from(lab.v4("sender")))
}

fn shown(file: &str) -> String {
    Path::new(file).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
