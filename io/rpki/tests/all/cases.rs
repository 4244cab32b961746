// SPDX-License-Identifier: Apache-2.0
//! A table of objects, each of which is checked here and by rpki-client.

use std::time::Duration;

use netserv_model::UnixTime;
use netserv_model::evidence::Holder;
use netserv_rpki::Invalid;
use netserv_rpki::limits::CHECKLIST_BYTES_MAX;
use netserv_rpki_tree::{ANCHOR_PATH, ROUTE_ORIGIN, Tree, digest};

use crate::relying_party::{self, Verdict};
use crate::scene::{ANCHOR, GRANT, HOLDER, REGISTRY, Scene, Staged, nets, now};

/// One object, and what is said about it.
struct Case {
    name: &'static str,
    /// `Ok`, or the name of the reason.
    ours: &'static str,
    /// Whether rpki-client 8.2 finds it good, and why it differs if it does.
    theirs: bool,
    scene: Box<dyn Fn(&mut Scene)>,
    staged: Box<dyn Fn(&mut Staged)>,
}

/// A case of a tree or a checklist.
fn made(name: &'static str, ours: &'static str, scene: impl Fn(&mut Scene) + 'static) -> Case {
    Case { name, ours, theirs: ours == "Ok", scene: Box::new(scene), staged: Box::new(|_| ()) }
}

/// A case of files that are changed after all is signed.
fn changed(name: &'static str, ours: &'static str, staged: impl Fn(&mut Staged) + 'static) -> Case {
    Case { name, ours, theirs: ours == "Ok", scene: Box::new(|_| ()), staged: Box::new(staged) }
}

impl Case {
    /// Says that rpki-client's verdict is the other one.
    fn unlike(self, _why: &str) -> Case {
        Case { theirs: !self.theirs, ..self }
    }

    fn stage(&self) -> Staged {
        let mut scene = Scene::new();
        (self.scene)(&mut scene);
        let mut staged = scene.stage();
        (self.staged)(&mut staged);
        staged
    }
}

/// Goal: each of 80 objects is judged as expected, and each reason is a sentence. Method: a table; the reasons' names are compared.
#[test]
fn each_object_is_judged_as_expected() {
    assert!(cases().len() >= 80, "{}", cases().len());
    let mut differ = Vec::new();
    for case in cases() {
        let staged = case.stage();
        let said = staged.write().check(&staged.checklist);
        if reason(&said) != case.ours {
            differ.push(format!("{}: {said:?}", case.name));
        }
        if let Err(invalid) = said {
            let sentence = invalid.to_string();
            assert!(sentence.len() > 10 && !sentence.ends_with('.'), "{sentence}");
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// Goal: the relying party rpki-client judges each of 80 objects as the node does, or the table says why not. Method: its file mode is asked about
/// the checklist, and its results about what the holder publishes.
#[test]
fn rpki_client_agrees() {
    if !relying_party::is_installed("rpki_client_agrees") {
        return;
    }
    let mut differ = Vec::new();
    for case in cases() {
        let staged = case.stage();
        let Verdict { is_good, said } = relying_party::ask(&staged, &staged.write());
        if is_good != case.theirs {
            differ.push(format!("{}: {said}", case.name));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

fn cases() -> Vec<Case> {
    [good(), checklists(), encodings(), authorities(), publications(), anchors()].into_iter().flatten().collect()
}

fn good() -> Vec<Case> {
    vec![
        made("IPv4 and IPv6", "Ok", |_| ()),
        made("IPv4", "Ok", |scene| scene.checklist.prefixes.truncate(1)),
        made("IPv6", "Ok", |scene| scene.checklist.prefixes = nets(&["2001:db8:1:2::/64"])),
        made("all that the holder has", "Ok", |scene| {
            scene.checklist.prefixes = nets(&["10.1.0.0/16", "2001:db8:1::/48"]);
            scene.checklist.certificate.prefixes = scene.checklist.prefixes.clone();
        }),
        made("a certificate for more than the checklist", "Ok", |scene| {
            scene.checklist.certificate.prefixes = nets(&["10.1.0.0/16", "2001:db8:1::/48"]);
        }),
        made("AS numbers beside addresses", "Ok", |scene| {
            scene.checklist.asns = vec![64_496];
            scene.checklist.certificate.asns = vec![64_496];
        }),
        made("a digest without a name", "Ok", |scene| scene.checklist.entries[0].0 = None),
        made("several digests", "Ok", |scene| scene.checklist.entries.insert(0, (None, digest(b"another")))),
        made("the registry signs", "Ok", |scene| scene.signer = REGISTRY),
        made("the trust anchor signs", "Ok", |scene| scene.signer = ANCHOR),
        made("an authority that inherits", "Ok", |scene| {
            let certificate = netserv_rpki_tree::Certificate { inherits: true, ..scene.tree.certificate(&[]) };
            scene.signer = scene.tree.authority(HOLDER, "department", &certificate);
        })
        .unlike(
            "RFC 3779 §2.2.3.5 has authorities inherit; rpki-client 8.2 does so with AS numbers and not with addresses",
        ),
        made("another certificate is revoked", "Ok", |scene| scene.tree.at(HOLDER).revoked.push(1)),
    ]
}

fn checklists() -> Vec<Case> {
    vec![
        made("its certificate is over", "Expired", |scene| scene.checklist.certificate.until = past()),
        made("its certificate is not yet valid", "NotYetValid", |scene| scene.checklist.certificate.from = future()),
        made("its certificate is revoked", "Revoked", |scene| {
            let next = scene.tree.last_serial() + 1;
            scene.tree.at(HOLDER).revoked.push(next);
        }),
        made("its certificate names another revocation list", "OtherRevocationList", |scene| {
            // The list is an older one of the holder's: the checklist was not revoked yet.
            let list = scene.tree.clone().publish()[&repo("holder/holder.crl")].clone();
            let next = scene.tree.last_serial() + 1;
            scene.tree.at(HOLDER).files.insert("old.crl".to_owned(), list);
            scene.tree.at(HOLDER).revoked.push(next);
            scene.checklist.certificate.list = Some("old.crl".to_owned());
        })
        .unlike("RFC 6487 §5 has an authority keep one list; rpki-client 8.2 reads the one that the checklist names"),
        made("its certificate claims more than the holder has", "Overclaims", |scene| {
            scene.checklist.certificate.prefixes = nets(&["10.1.0.0/16", "10.2.0.0/16", "2001:db8:1::/48"]);
        }),
        made("it is for more than its certificate", "Overclaims", |scene| {
            scene.checklist.prefixes = nets(&["10.1.0.0/16"]);
        }),
        made("it is for IPv6 that its certificate has not", "Overclaims", |scene| {
            scene.checklist.certificate.prefixes.truncate(1);
        }),
        made("it is for an AS number that its certificate has not", "Overclaims", |scene| {
            scene.checklist.asns = vec![64_496];
        }),
        made("it is for another text", "OtherDigest", |scene| scene.checklist.entries[0].1 = digest(b"another")),
        made("it lists nothing", "OtherDigest", |scene| scene.checklist.entries.clear()),
        made("it is for AS numbers only", "NoAddresses", |scene| {
            scene.checklist.prefixes.clear();
            scene.checklist.asns = vec![64_496];
            scene.checklist.certificate.asns = vec![64_496];
        })
        .unlike("it is valid, but speaks for no addresses"),
        made("its type ends in .58", "NotChecklist", |scene| scene.checklist.content_type[10] = 58),
        made("its type has one large number", "NotChecklist", |scene| {
            scene.checklist.content_type = [vec![0xFF; 10], vec![0x7F]].concat();
        }),
        made("it is a ROA", "NotChecklist", |scene| {
            scene.checklist.content_type = ROUTE_ORIGIN.to_vec();
            scene.checklist.is_published = true;
        }),
        made("it is a ROA with the type of a checklist in nothing but its name", "NotChecklist", |scene| {
            scene.checklist.content_type = ROUTE_ORIGIN.to_vec();
        }),
        made("its certificate says where it is published", "Published", |scene| scene.checklist.is_published = true),
        made("its certificate inherits", "Inherits", |scene| scene.checklist.certificate.inherits = true),
        made("its certificate has the policy of RFC 8360", "Reconsidered", |scene| {
            scene.checklist.certificate.is_reconsidered = true;
        }),
        made("its certificate has the policy of RFC 8360 and claims more", "Reconsidered", |scene| {
            scene.checklist.certificate.is_reconsidered = true;
            scene.checklist.certificate.prefixes = nets(&["0.0.0.0/0", "::/0"]);
        }),
    ]
}

fn encodings() -> Vec<Case> {
    vec![
        made("it names version 0", "Malformed", |scene| scene.checklist.version = Some(0)),
        made("it names version 1", "Malformed", |scene| scene.checklist.version = Some(1)),
        changed("it is empty", "Malformed", |staged| staged.checklist.clear()),
        changed("its end is missing", "Malformed", |staged| {
            let end = staged.checklist.len() - 1;
            staged.checklist.truncate(end);
        }),
        changed("something follows it", "Malformed", |staged| staged.checklist.push(0))
            .unlike("RFC 6488 §2 has nothing after the object; rpki-client 8.2 does not look"),
        changed("a bit of its signature is flipped", "BadSignature", |staged| {
            *staged.checklist.last_mut().unwrap() ^= 1;
        }),
        changed("a bit of the digest in it is flipped", "OtherDigest", |staged| {
            let at = position(&staged.checklist, &digest(GRANT).0);
            staged.checklist[at] ^= 1;
        }),
        changed("a bit of its certificate's signature is flipped", "BadSignature", |staged| {
            // The certificate ends where the signer's information begins: a SET of a SEQUENCE with version 3.
            let at = position(&staged.checklist, &[0x02, 0x01, 0x03, 0x80, 0x14]);
            staged.checklist[at - 9] ^= 1;
        }),
        made("it is too large", "TooLarge", |scene| {
            scene.checklist.entries.extend((0..CHECKLIST_BYTES_MAX / 32).map(|_| (None, digest(b"another"))));
        })
        .unlike("the bound is ours"),
    ]
}

fn authorities() -> Vec<Case> {
    vec![
        made("the holder's certificate is over", "Expired", |scene| {
            with_holder(scene, |certificate| certificate.until = past());
        }),
        made("the holder's certificate is not yet valid", "NotYetValid", |scene| {
            with_holder(scene, |certificate| certificate.from = future());
        }),
        made("the holder claims more than the registry has", "Overclaims", |scene| {
            with_holder(scene, |certificate| certificate.prefixes.extend(nets(&["11.0.0.0/8"])));
        }),
        made("the holder claims an AS number that the registry has not", "Overclaims", |scene| {
            with_holder(scene, |certificate| certificate.asns = vec![64_500]);
        }),
        made("the holder's certificate has the policy of RFC 8360", "Reconsidered", |scene| {
            with_holder(scene, |certificate| certificate.is_reconsidered = true);
        }),
        made("the holder's certificate is that of an end entity", "Malformed", |scene| {
            with_holder(scene, |certificate| certificate.is_end_entity = true);
        }),
        made("the holder's certificate names another revocation list", "OtherRevocationList", |scene| {
            with_holder(scene, |certificate| certificate.list = Some("old.crl".to_owned()));
        }),
        made("the holder has no such addresses", "Overclaims", |scene| {
            with_holder(scene, |certificate| certificate.prefixes = nets(&["10.1.0.0/24", "2001:db8:1::/48"]));
        }),
        made("the holder is revoked", "Revoked", |scene| scene.tree.revoke(HOLDER)),
        made("the registry is revoked", "Revoked", |scene| scene.tree.revoke(REGISTRY)),
        made("another authority of the holder's name signs", "BadSignature", |scene| {
            // Its certificate is not published: the holder's is in its place.
            let certificate = scene.tree.certificate(&nets(&["10.1.0.0/16", "2001:db8:1::/48"]));
            let published = scene.tree.at(REGISTRY).files["holder.cer"].clone();
            scene.signer = scene.tree.authority(REGISTRY, "holder", &certificate);
            scene.tree.at(REGISTRY).files.insert("holder.cer".to_owned(), published);
        }),
        changed("the holder's certificate is missing", "NoIssuer", |staged| {
            staged.files.remove(&repo("registry/holder.cer")).unwrap();
        }),
        changed("the registry's certificate is missing", "NoIssuer", |staged| {
            staged.files.remove(&repo("lab/registry.cer")).unwrap();
        }),
        changed("the holder's certificate is garbage", "Malformed", |staged| {
            staged.files.insert(repo("registry/holder.cer"), b"garbage".to_vec()).unwrap();
        }),
        changed("a bit of the registry's certificate is flipped", "OtherHash", |staged| {
            *staged.files.get_mut(&repo("lab/registry.cer")).unwrap().last_mut().unwrap() ^= 1;
        }),
    ]
}

fn publications() -> Vec<Case> {
    vec![
        changed("the holder's revocation list is missing", "Missing", |staged| {
            staged.files.remove(&repo("holder/holder.crl")).unwrap();
        }),
        changed("the registry's revocation list is missing", "Missing", |staged| {
            staged.files.remove(&repo("registry/registry.crl")).unwrap();
        }),
        made("the holder's revocation list is over", "Expired", |scene| scene.tree.at(HOLDER).list.1 = past()),
        made("the registry's revocation list is over", "Expired", |scene| scene.tree.at(REGISTRY).list.1 = past()),
        made("the holder's revocation list is not yet valid", "NotYetValid", |scene| {
            scene.tree.at(HOLDER).list.0 = future();
        }),
        changed("the holder's revocation list is garbage", "OtherHash", |staged| {
            staged.files.insert(repo("holder/holder.crl"), b"garbage".to_vec()).unwrap();
        }),
        changed("the registry's revocation list is in the holder's place", "OtherHash", |staged| {
            let list = staged.files[&repo("registry/registry.crl")].clone();
            staged.files.insert(repo("holder/holder.crl"), list).unwrap();
        }),
        made("the manifest lists a revocation list of another authority", "BadSignature", |scene| {
            let list = scene.tree.clone().publish()[&repo("registry/registry.crl")].clone();
            scene.tree.at(HOLDER).other_list = Some(list);
        }),
        made("the revocation list is not in the manifest", "NotListed", |scene| {
            scene.tree.at(HOLDER).unlisted.insert("holder.crl".to_owned());
        }),
        made("the holder's certificate is not in the manifest", "NotListed", |scene| {
            scene.tree.at(REGISTRY).unlisted.insert("holder.cer".to_owned());
        }),
        changed("the holder's certificate is another than in the manifest", "OtherHash", |staged| {
            let mut scene = Scene::new();
            with_holder(&mut scene, |_| ());
            scene.signer = scene.tree.last();
            let another = scene.stage();
            let manifest = staged.files[&repo("registry/registry.mft")].clone();
            let list = staged.files[&repo("registry/registry.crl")].clone();
            *staged = another;
            staged.files.insert(repo("registry/registry.mft"), manifest);
            staged.files.insert(repo("registry/registry.crl"), list);
        }),
        made("another file that the manifest lists is missing", "Ok", |scene| {
            scene.tree.at(HOLDER).absent.insert("gone.roa".to_owned());
        })
        .unlike("RFC 9286 §6.4 has the relying party fetch all files; what it keeps is what it found whole"),
        changed("the holder's manifest is missing", "Missing", |staged| {
            staged.files.remove(&repo("holder/holder.mft")).unwrap();
        }),
        changed("the registry's manifest is missing", "Missing", |staged| {
            staged.files.remove(&repo("registry/registry.mft")).unwrap();
        }),
        changed("the registry's manifest is in the holder's place", "BadSignature", |staged| {
            let manifest = staged.files[&repo("registry/registry.mft")].clone();
            staged.files.insert(repo("holder/holder.mft"), manifest).unwrap();
        }),
        made("the holder's manifest is over", "Expired", |scene| scene.tree.at(HOLDER).manifest.1 = past()),
        made("the registry's manifest is over", "Expired", |scene| scene.tree.at(REGISTRY).manifest.1 = past()),
        made("the holder's manifest is not yet valid", "NotYetValid", |scene| {
            scene.tree.at(HOLDER).manifest.0 = future();
        }),
        made("the holder's manifest has a certificate that is over", "Expired", |scene| {
            scene.tree.at(HOLDER).manifest_certificate.1 = past();
        }),
        changed("a bit of the holder's manifest is flipped", "BadSignature", |staged| {
            *staged.files.get_mut(&repo("holder/holder.mft")).unwrap().last_mut().unwrap() ^= 1;
        }),
    ]
}

fn anchors() -> Vec<Case> {
    vec![
        changed("the trust anchor's certificate is missing", "Missing", |staged| {
            staged.files.remove(ANCHOR_PATH).unwrap();
        }),
        changed("the trust anchor's certificate has another key than the locator", "OtherAnchorKey", |staged| {
            let other = Tree::new(now()).publish()[ANCHOR_PATH].clone();
            staged.files.insert(ANCHOR_PATH.to_owned(), other);
        }),
        changed("the locator has another key", "NoIssuer", |staged| staged.locator = Tree::new(now()).locator()),
        changed("the locator has another key, and the certificate is where its URI says", "UnknownAnchor", |staged| {
            let certificate = staged.files[ANCHOR_PATH].clone();
            staged.files.insert(format!("{}/ta/lab.cer", netserv_rpki_tree::HOST), certificate);
            staged.locator = Tree::new(now()).locator();
        }),
        changed("the trust anchor's certificate is where its URI says", "Ok", |staged| {
            let certificate = staged.files.remove(ANCHOR_PATH).unwrap();
            staged.files.insert(format!("{}/ta/lab.cer", netserv_rpki_tree::HOST), certificate);
        })
        .unlike("it has trust anchors in a folder of their own; FORT and Routinator keep them by URI"),
        changed("the locator and its certificate are of another trust anchor", "NoIssuer", |staged| {
            let mut other = Tree::new(now());
            staged.locator = other.locator();
            staged.files.insert(ANCHOR_PATH.to_owned(), other.publish()[ANCHOR_PATH].clone());
        }),
        changed("a bit of the trust anchor's certificate is flipped", "BadSignature", |staged| {
            *staged.files.get_mut(ANCHOR_PATH).unwrap().last_mut().unwrap() ^= 1;
        })
        .unlike("RFC 8630 §2.2 has the certificate sign itself; rpki-client 8.2 compares keys only"),
    ]
}

/// Replaces the holder by another with a changed certificate.
fn with_holder(scene: &mut Scene, change: impl Fn(&mut netserv_rpki_tree::Certificate)) {
    let mut certificate = scene.tree.certificate(&nets(&["10.1.0.0/16", "2001:db8:1::/48"]));
    change(&mut certificate);
    scene.signer = scene.tree.authority(REGISTRY, "holder", &certificate);
    scene.tree.route_origin(scene.signer, "route", nets(&["10.1.0.0/24"])[0]);
}

fn reason(said: &Result<Holder, Invalid>) -> String {
    match said {
        Ok(_) => "Ok".to_owned(),
        Err(invalid) => format!("{invalid:?}").split([' ', '{']).next().unwrap().to_owned(),
    }
}

fn repo(file: &str) -> String {
    format!("{}/repo/{file}", netserv_rpki_tree::HOST)
}

fn position(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

fn past() -> UnixTime {
    UnixTime(now().0 - 60_000)
}

fn future() -> UnixTime {
    now() + Duration::from_secs(3600)
}
