// SPDX-License-Identifier: Apache-2.0
//! A browser on a machine of a lab, for tests.

use netserv_lab::netns::Lab;
use serde_json::Value;

/// A browser, without which a test cannot go on.
pub struct Browser(netserv_lab::browser::Browser);

impl Browser {
    /// Opens a page.
    pub fn open(lab: &Lab, machine: &str, url: &str) -> Browser {
        Browser(netserv_lab::browser::Browser::open(lab, machine, url).unwrap())
    }

    /// Returns the value of an expression in the page; nothing while there is none.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        self.0.evaluate(expression).unwrap()
    }

    /// Has the browser do something. Returns what it answers.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.0.call(method, parameters).unwrap()
    }
}
