// SPDX-License-Identifier: Apache-2.0
//! A browser on a machine of a lab.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::netns::Lab;

/// A browser that is led by its debugging pipe: messages in JSON, each with a zero byte behind it.
pub struct Browser {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: Value,
    calls: u64,
}

impl Browser {
    /// Opens a page.
    ///
    /// # Errors
    /// Chromium does not start.
    pub fn open(lab: &Lab, machine: &str, url: &str) -> Result<Browser> {
        let profile = format!("--user-data-dir={}", lab.dir().join(format!("browser-{machine}")).display());
        // The pipe's ends are descriptors 3 and 4.
        let mut command = lab.command(machine, "sh");
        let script = "exec \"$@\" 3<&0 4>&1 >&2 2>/dev/null";
        command.args(["-c", script, "sh", "chromium", "--headless=new", "--no-sandbox"]);
        command.args(["--disable-gpu", "--autoplay-policy=no-user-gesture-required"]);
        command.args(["--remote-debugging-pipe", &profile]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take().context("the browser has no input")?;
        let output = BufReader::new(process.stdout.take().context("the browser has no output")?);
        let mut browser = Browser { process, input, output, session: Value::Null, calls: 0 };
        let target = browser.call("Target.createTarget", &json!({ "url": url }))?["targetId"].take();
        let attached = browser.call("Target.attachToTarget", &json!({ "targetId": target, "flatten": true }))?;
        browser.session = attached["sessionId"].clone();
        Ok(browser)
    }

    /// Returns the value of an expression in the page; nothing while there is none.
    ///
    /// # Errors
    /// The browser ended.
    pub fn evaluate(&mut self, expression: &str) -> Result<Value> {
        let answer = self.call("Runtime.evaluate", &json!({ "expression": expression, "awaitPromise": true }));
        Ok(answer?["result"]["value"].take())
    }

    /// Has the browser do something. Returns what it answers.
    ///
    /// # Errors
    /// The browser ended.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.input.write_all(format!("{message}\0").as_bytes())?;
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes)?;
            ensure!(bytes.pop() == Some(0), "the browser ended");
            let mut answer: Value = serde_json::from_slice(&bytes)?;
            // In between it tells of events.
            if answer["id"] == self.calls {
                return Ok(answer["result"].take());
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
