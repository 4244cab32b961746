// SPDX-License-Identifier: Apache-2.0
//! Services: modules that a user has installed, put together as one. Their components are composed, and packets go
//! through them in the service's order.
//!
//! A service is what its parts are: it is composed anew when one of them is replaced, and removed when one is gone.

pub(crate) mod composing;
pub(crate) mod order;
pub(crate) mod parts;
