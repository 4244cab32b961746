// SPDX-License-Identifier: Apache-2.0
//! Views of IPv4 and IPv6 packets.
