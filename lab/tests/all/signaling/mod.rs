// SPDX-License-Identifier: Apache-2.0
//! Requests on their way: paths, peers, borders.

mod applications;
mod crowd;
mod domains;
mod floods;
mod gist_errors;
mod hops;
mod ingress;
mod many;
mod moved_route;
mod nat;
mod places;
mod sessions;
mod signaling_tls;
mod stack_truth;
mod wireshark;
