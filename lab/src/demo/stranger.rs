// SPDX-License-Identifier: Apache-2.0
//! `./dev demo --app stranger`: users whom no configuration names. One is let in by the holder of its prefixes, by a checklist of the RPKI, one
//! by its address itself, and one by a clearinghouse's grant that somebody passed on; a fourth is refused. The first goes when its
//! holder's certificate is revoked, while phones send.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use ipnet::IpNet;
use netserv_authority::digest_of_grant;
use netserv_authority::grant::user_of;
use netserv_model::api::RequestResult;
use netserv_model::evidence::grants_in;
use netserv_model::request::Outcome;
use netserv_model::{RefusalKind, UnixTime, UserId};
use netserv_rpki_tree::Tree;

use super::telling::{request_timeout, title};
use super::{check_installed, echo_once, ensure_programs, phones, show};
use crate::netns::Lab;
use crate::node::{FILES_ALLOWED, LabUser, cli};
use crate::patience::wait_for;
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
    let phoning = Stranger::new(&net.lab, "phoning")?;
    let grant = net.checked_grant(&phoning)?;
    println!("  netserv setup keep-alive … --grant {} --checklist {}", shown(&grant.0), shown(&grant.1));
    let result =
        phoning.set_up(&net.lab, "keep-alive", 5060, &["--grant", &text(&grant.0), "--checklist", &text(&grant.1)])?;
    show(&result);
    check_installed(&result)?;
    let during = phones(&net.lab)?;
    ensure!(before.reached > 0 && during.reached == 0, "{} keep-alives reached the server", during.reached);

    title("By the address itself: what lies at its web server is for this key (the paper's reverse routability)");
    let owner = Stranger::new(&net.lab, "owner")?;
    let proof = owner.proof(&net.lab)?;
    println!("  netserv setup echo … --proof {}", shown(&proof));
    let result = owner.set_up(&net.lab, "echo", 44444, &["--proof", &text(&proof)])?;
    show(&result);
    check_installed(&result)?;
    echo_once(&net.lab)?;

    title("By a grant: a clearinghouse gives a provider rights, and the provider passes a part of them on");
    let tenant = Stranger::new(&net.lab, "tenant")?;
    let chain = net.delegated_grant(&tenant)?;
    println!("  netserv setup echo … --grant {}", shown(&chain));
    let result = tenant.set_up(&net.lab, "echo", 44445, &["--grant", &text(&chain)])?;
    show(&result);
    check_installed(&result)?;

    title("A fourth has a grant of nobody whom the operators trust");
    let fourth = Stranger::new(&net.lab, "fourth")?;
    let made_up = net.grant(&fourth.key, &fourth_issuer(&net.lab)?, None, &[])?;
    let result = fourth.set_up(&net.lab, "echo", 44446, &["--grant", &text(&made_up)])?;
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
    let is_gone = || ["n1", "n2"].iter().all(|node| !phoning.is_on(&net.lab, node));
    let mut rounds = 0;
    let waited = wait_for("both nodes to remove the first one's module", REVOKED_WAIT, || {
        rounds += 1;
        phones(&net.lab).is_ok() && is_gone()
    });
    waited.map_err(|gave_up| gave_up.seeing(net.lab.log("n1", "netservd")))?;
    println!("  gone {:.0} s after the revocation, in round {rounds} of the phones", revoked.elapsed().as_secs_f64());
    let after = phones(&net.lab)?;
    ensure!(after.reached == before.reached, "{} keep-alives reached the server after", after.reached);
    ensure!(owner.is_on(&net.lab, "n2") && tenant.is_on(&net.lab, "n2"), "the other two lost theirs");
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
    fn checked_grant(&mut self, to: &Stranger) -> Result<(PathBuf, PathBuf)> {
        let issuer = self.lab.user("holder", &[])?;
        let grant = self.grant(&to.key, &issuer, None, &[])?;
        let first = grants_in(&std::fs::read_to_string(&grant)?).into_iter().next().context("no grant")?;
        let checklist = self.tree.checklist(&[own(&self.lab)], digest_of_grant(&first));
        let file = self.lab.dir().join("phoning.sig");
        std::fs::write(&file, self.tree.sign(self.holder, &checklist))?;
        self.publish()?;
        Ok((grant, file))
    }

    /// Has the clearinghouse grant a provider something, who passes it on.
    fn delegated_grant(&self, to: &Stranger) -> Result<PathBuf> {
        let provider = self.lab.user("provider", &[])?;
        let first = self.grant(&provider, &self.clearinghouse, None, &["--delegations", "1"])?;
        self.grant(&to.key, &provider, Some(&first), &["--port", "44445"])
    }

    fn grant(&self, to: &LabUser, by: &LabUser, from: Option<&Path>, args: &[&str]) -> Result<PathBuf> {
        let out = self.lab.dir().join(format!("{}-by-{}.grant", to.name, by.name));
        let (key, file, from, prefix) = (text(&by.key), text(&out), from.map(text), own(&self.lab).to_string());
        let mut all = match &from {
            None => vec!["grant", "issue"],
            Some(from) => vec!["grant", "delegate", from],
        };
        all.extend(["--key", &key, "--to", &to.public, "--prefix", &prefix, "--out", &file]);
        all.extend(args);
        println!("  netserv {} --to {}… --prefix {prefix}", all[..2].join(" "), &to.public[..16]);
        cli(&all)?;
        Ok(out)
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

/// A user whom no configuration names.
struct Stranger {
    key: LabUser,
    user: UserId,
}

impl Stranger {
    fn new(lab: &Lab, name: &str) -> Result<Stranger> {
        let key = lab.user(name, &[])?;
        let user = user_of(&key.public.parse()?);
        println!("  {name} is {user} by its key");
        Ok(Stranger { key, user })
    }

    fn set_up(&self, lab: &Lab, module: &str, port: u16, evidence: &[&str]) -> Result<RequestResult> {
        let package = lab.package(module, &self.key)?;
        let (url, file, key) = (lab.publish("sender", &package)?, text(&package.path), text(&self.key.key));
        let (filter, receiver) = (format!("udp dst {} port {port}", own(lab)), lab.v4("receiver").to_string());
        let args = ["setup", &file, "--to", &receiver, "--url", &url, "--filter", &filter];
        let timeout = request_timeout();
        lab.request("sender", &[&args, &["--key", &key, "--timeout", &timeout][..], evidence].concat())
    }

    /// Makes a proof that the sender's web server confirms.
    fn proof(&self, lab: &Lab) -> Result<PathBuf> {
        let (out, root) = (lab.dir().join("owner.proof"), text(&lab.dir().join("www")));
        let (address, key, file) = (lab.v4("sender").to_string(), text(&self.key.key), text(&out));
        let args = ["prove", "address", &address, "--key", &key, "--web-root", &root, "--out", &file];
        println!("  netserv prove address {address} --web-root …");
        cli(&args)?;
        Ok(out)
    }

    fn is_on(&self, lab: &Lab, node: &str) -> bool {
        lab.modules(node).is_ok_and(|list| list.modules.iter().any(|status| status.user == self.user))
    }
}

fn fourth_issuer(lab: &Lab) -> Result<LabUser> {
    lab.user("nobody", &[])
}

/// The sender's address, of which all of it is about.
fn own(lab: &Lab) -> IpNet {
    IpNet::from(std::net::IpAddr::from(lab.v4("sender")))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn shown(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}
