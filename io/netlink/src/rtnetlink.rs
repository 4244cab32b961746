// SPDX-License-Identifier: Apache-2.0
//! Numbers of routing netlink, from `linux/rtnetlink.h` and the headers that it includes.
#![allow(missing_docs, reason = "each has its name of the kernel's beside it")]

/// `AF_INET`.
pub const FAMILY_V4: u8 = 2;
/// `AF_INET6`.
pub const FAMILY_V6: u8 = 10;
/// The index of the loopback interface in every namespace (`LOOPBACK_IFINDEX`).
pub const LOOPBACK_INDEX: u32 = 1;
/// The protocol number of routes and rules that NetServ makes, by which `ip route` and `ip rule` show whose they are; 78 is `N`.
pub const OWN_PROTOCOL: u8 = 78;

// Messages.
pub const NEW_LINK: u16 = 16; // RTM_NEWLINK
pub const DELETE_LINK: u16 = 17; // RTM_DELLINK
pub const GET_LINK: u16 = 18; // RTM_GETLINK
pub const SET_LINK: u16 = 19; // RTM_SETLINK
pub const NEW_ADDRESS: u16 = 20; // RTM_NEWADDR
pub const DELETE_ADDRESS: u16 = 21; // RTM_DELADDR
pub const GET_ADDRESS: u16 = 22; // RTM_GETADDR
pub const NEW_ROUTE: u16 = 24; // RTM_NEWROUTE
pub const DELETE_ROUTE: u16 = 25; // RTM_DELROUTE
pub const GET_ROUTE: u16 = 26; // RTM_GETROUTE
pub const NEW_NEIGHBOUR: u16 = 28; // RTM_NEWNEIGH
pub const DELETE_NEIGHBOUR: u16 = 29; // RTM_DELNEIGH
pub const GET_NEIGHBOUR: u16 = 30; // RTM_GETNEIGH
pub const NEW_RULE: u16 = 32; // RTM_NEWRULE
pub const DELETE_RULE: u16 = 33; // RTM_DELRULE
pub const GET_RULE: u16 = 34; // RTM_GETRULE

// Flags of requests.
pub const CREATE: u16 = 0x400; // NLM_F_CREATE
pub const EXCLUSIVE: u16 = 0x200; // NLM_F_EXCL
pub const REPLACE: u16 = 0x100; // NLM_F_REPLACE

// Links.
pub const LINK_HEADER_BYTES: usize = 16; // struct ifinfomsg
pub const LINK_ADDRESS: u16 = 1; // IFLA_ADDRESS
pub const LINK_NAME: u16 = 3; // IFLA_IFNAME
pub const LINK_MTU: u16 = 4; // IFLA_MTU
pub const LINK_INFO: u16 = 18; // IFLA_LINKINFO
pub const LINK_QUEUES_OUT: u16 = 31; // IFLA_NUM_TX_QUEUES
pub const LINK_QUEUES_IN: u16 = 32; // IFLA_NUM_RX_QUEUES
pub const LINK_INFO_KIND: u16 = 1; // IFLA_INFO_KIND
pub const LINK_INFO_DATA: u16 = 2; // IFLA_INFO_DATA
pub const LINK_UP: u32 = 1; // IFF_UP

// Addresses.
pub const ADDRESS_HEADER_BYTES: usize = 8; // struct ifaddrmsg
pub const ADDRESS_PEER: u16 = 1; // IFA_ADDRESS
pub const ADDRESS_LOCAL: u16 = 2; // IFA_LOCAL

// Routes.
pub const ROUTE_HEADER_BYTES: usize = 12; // struct rtmsg
pub const ROUTE_DESTINATION: u16 = 1; // RTA_DST
pub const ROUTE_INTERFACE_OUT: u16 = 4; // RTA_OIF
pub const ROUTE_GATEWAY: u16 = 5; // RTA_GATEWAY
pub const ROUTE_TABLE: u16 = 15; // RTA_TABLE
pub const ROUTE_MARK: u16 = 16; // RTA_MARK
pub const ROUTE_UNICAST: u8 = 1; // RTN_UNICAST
pub const ROUTE_LOCAL: u8 = 2; // RTN_LOCAL
pub const SCOPE_LINK: u8 = 253; // RT_SCOPE_LINK
pub const ON_LINK: u32 = 4; // RTNH_F_ONLINK

// Neighbours.
pub const NEIGHBOUR_ADDRESS: u16 = 1; // NDA_DST
pub const NEIGHBOUR_STATION: u16 = 2; // NDA_LLADDR
pub const PERMANENT: u16 = 0x80; // NUD_PERMANENT

// Rules of policy routing.
pub const RULE_HEADER_BYTES: usize = 12; // struct fib_rule_hdr
pub const RULE_INTERFACE_IN: u16 = 3; // FRA_IIFNAME
pub const RULE_PRIORITY: u16 = 6; // FRA_PRIORITY
pub const RULE_MARK: u16 = 10; // FRA_FWMARK
pub const RULE_TABLE: u16 = 15; // FRA_TABLE
pub const RULE_MARK_MASK: u16 = 16; // FRA_FWMASK
pub const RULE_ORIGIN: u16 = 21; // FRA_PROTOCOL: who made the rule
