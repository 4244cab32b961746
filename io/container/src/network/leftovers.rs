// SPDX-License-Identifier: Apache-2.0
//! What an instance left in the node's network namespace.

use netserv_model::container_link::{container_link_group, container_link_prefix, is_container_link};

use super::error::NetworkError;
use super::host_intercepts::remove_intercepts;
use super::{link, sent, sockets};

/// Removes the links of all containers of an instance in this network namespace and what leads packets of others there,
/// also what a killed run left, and returns how many links there were. However many: about 30 ms.
///
/// # Errors
/// [`NetworkError`] with the first that could not be removed.
pub fn remove_networks(instance: &str) -> Result<usize, NetworkError> {
    remove_intercepts(instance)?;
    let rules = sockets::rules()?;
    let prefix = container_link_prefix(instance);
    let is_ours = |name: &str| is_container_link(name) && name.starts_with(&prefix);
    let host = sockets::routes()?;
    let links = || {
        let names = link::names(&host).map_err(NetworkError::kernel("ask for devices"))?;
        Ok::<Vec<String>, NetworkError>(names.into_iter().filter(|name| is_ours(name)).collect())
    };
    let found = links()?;
    if let Some(group) = found.first().and_then(|name| container_link_group(name)) {
        if let Err(error) = link::remove_group(&host, group) {
            tracing::debug!(%error, "links of containers are removed one by one");
        }
        links()?.iter().try_for_each(|name| link::remove(&host, name))?;
    }
    sent::remove_table(&rules, instance)?;
    Ok(found.len())
}
