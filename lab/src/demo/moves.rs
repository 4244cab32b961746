// SPDX-License-Identifier: Apache-2.0
//! `./dev demo --app move`: a module that runs moves between two nodes with what it knows, also when one of them dies on the way.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use super::telling::title;
use crate::mover::Mover;
use crate::patience::{grown, wait_for};
use crate::relocating::{Relocated, Relocating};

/// Packets a second, and for how long, on a machine that is not busy.
const RATE: u64 = 500;
const STREAM: Duration = Duration::from_secs(10);
/// How long a step may take, on a machine that is not busy.
const WAIT: Duration = Duration::from_secs(30);

/// Shows it.
///
/// # Errors
/// Something did not do what the demo shows.
pub fn run() -> Result<()> {
    let begun = Instant::now();
    title("net-monitor runs on n1, and counts what comes for the sender");
    let mut net = Relocating::up("auto")?;
    println!(
        "  sender {} ── n1 ── r (plain router) ── n2 ── receiver {}",
        net.lab.v4("sender"),
        net.lab.v4("receiver")
    );
    let seconds = grown(STREAM).as_secs();
    let mut stream = net.stream(RATE, seconds)?;
    let waited = wait_for("the module on n1 to count packets", WAIT, || net.counted("n1").is_ok_and(|now| now > RATE));
    waited.map_err(|gave_up| gave_up.seeing(format!("counted: {:?}", net.counted("n1"))))?;
    println!("  {} packets so far, of {RATE} a second", net.counted("n1")?);

    title("`netserv relocate` has it go on on n2, and back, while packets come");
    let mut still_ms = 0;
    for (old, new) in [("n1", "n2"), ("n2", "n1"), ("n1", "n2")] {
        let told = net.relocate(old, new)?;
        shown(&told);
        still_ms += told.state.map_or(0, |state| state.still_ms);
        let counted = net.counted(new)?;
        println!("  counted so far: {counted}; {old} has {} modules", net.states(old)?.len());
        wait_for(&format!("the module on {new} to count {RATE} packets more, or their end"), WAIT, || {
            net.counted(new).is_ok_and(|now| now >= counted + RATE) || matches!(stream.try_wait(), Ok(Some(_)))
        })?;
    }
    ensure!(stream.wait()?.success(), "the packets did not come");
    let (sent, missed) = (RATE * seconds, still_ms * RATE / 1000 + 1);
    let all_but = format!("all but {missed} of {sent} packets to be counted");
    let waited = wait_for(&all_but, WAIT, || net.counted("n2").is_ok_and(|now| now + missed >= sent));
    waited.map_err(|gave_up| gave_up.seeing(format!("counted: {:?}", net.counted("n2"))))?;
    let counted = net.counted("n2")?;
    ensure!(counted <= sent, "{counted} of {sent} counted: some twice");
    println!("  {counted} of {sent} are counted, none twice; it stood still for less than {still_ms} ms in all");

    title("n2 is killed in the middle of a move; the same command again");
    let command = net.command("n2", "n1")?.spawn()?;
    std::thread::sleep(Duration::from_millis(100));
    net.lab.kill("n2", "netservd")?;
    println!("  the command: {}", command.wait_with_output()?.status);
    net.lab.restart_netservd("n2")?;
    let mut told = Err(anyhow!("it was not given again"));
    let waited = wait_for("the same command to end the move", WAIT, || {
        told = net.relocate("n2", "n1");
        told.is_ok()
    });
    waited.map_err(|gave_up| gave_up.seeing(format!("{told:?}")))?;
    shown(&told?);
    ensure!(net.states("n1")?.len() == 1 && net.states("n2")?.is_empty(), "it is not on n1 alone");
    println!("  n1 has it, n2 has nothing; {} are counted", net.counted("n1")?);
    drop(net);
    by_rule()?;
    println!("\n  the whole demo: {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The agent moves it: nobody types a command.
fn by_rule() -> Result<()> {
    title("The same by rule of the agent: nobody types a command");
    let mut net = Mover::up("auto", "follow = true, looks = 2, rest-s = 1", &[])?;
    println!(
        "  sender {} ── n1 ── na ── r (plain router) ── receiver {}",
        net.lab.v4("sender"),
        net.lab.v4("receiver")
    );
    println!("                        └─ nb ─┘");
    net.start_agent()?;
    net.wait_for(&["na"], WAIT)?;
    println!("  the receiver comes, and the agent has the module on na, the last node of the way");
    let mut stream = net.stream(RATE, 600)?;
    let waited = wait_for("the module on na to count packets", WAIT, || net.counted("na").is_ok_and(|now| now > RATE));
    waited.map_err(|gave_up| gave_up.seeing(format!("counted: {:?}", net.counted("na"))))?;

    title("na's operator drains it (`netserv node drain`)");
    let counted = net.counted("na")?;
    net.drain("na", true)?;
    goes_on(&net, "n1", counted)?;
    net.drain("na", false)?;

    title("n1's operator drains that, too: it goes back");
    let counted = net.counted("n1")?;
    net.drain("n1", true)?;
    goes_on(&net, "na", counted)?;
    net.drain("n1", false)?;

    title("The way to the receiver leads by nb: a user that moved");
    let counted = net.counted("na")?;
    net.lead_through("nb")?;
    goes_on(&net, "nb", counted)?;
    stream.kill()?;
    stream.wait()?;
    for [from, to, why, state] in net.moves()? {
        println!("  {from} to {to} by {why}: {state}");
    }
    Ok(())
}

/// Waits until a node has the module alone, which counts on from there.
fn goes_on(net: &Mover, node: &str, counted: u64) -> Result<()> {
    let begun = Instant::now();
    net.wait_for(&[node], WAIT)?;
    let took = begun.elapsed();
    let what = format!("the module on {node} to count on from {counted}");
    let waited = wait_for(&what, WAIT, || net.counted(node).is_ok_and(|now| now > counted));
    waited.map_err(|gave_up| gave_up.seeing(format!("counted: {:?}", net.counted(node))))?;
    println!(
        "  {node} alone has it {:.1} s later, and counts on from {counted}: {}",
        took.as_secs_f64(),
        net.counted(node)?
    );
    Ok(())
}

fn shown(told: &Relocated) {
    let Relocated { node, epoch, resumed, state } = told;
    let how = if *resumed { ", going on from an earlier command" } else { "" };
    match state {
        Some(state) => println!(
            "  on {node} in epoch {epoch}{how}: {} bytes of state, on the way for less than {} ms",
            state.bytes, state.still_ms
        ),
        None => println!("  on {node} in epoch {epoch}{how}"),
    }
}
