// SPDX-License-Identifier: Apache-2.0
//! What of a manifest a node must not read over.

words! {
    serde
    /// A key of the manifest without which the module would do something else than its author meant.
    ///
    /// A node that does not know a feature by name refuses the package. Each key that is added to the format is either one
    /// that a node may read over, or a feature here.
    pub enum Feature {
        /// `server.intercept`: the module takes over connections between others.
        Intercept = "intercept",
        /// `server.intercept-tls`: the node speaks TLS in the place of servers.
        InterceptTls = "intercept-tls",
        /// `needs`: a node that grants less is to refuse the module.
        Needs = "needs",
        /// A filter of `packet.filters` has the word `self`.
        SelfFilter = "self-filter",
        /// `service`: the package is a chain of other modules.
        Service = "service",
        /// A filter of `packet.filters` has the word `syn`.
        SynFilter = "syn-filter",
        /// `server.tls`: the node speaks TLS with the package's certificate.
        Tls = "tls",
    }
}
