// SPDX-License-Identifier: Apache-2.0
//! What the papers measured, to be shown beside our figures.

use super::ways::Way;

/// NetServ 2011, §9.2: loss-free rates in kpps for packets of 64 and of 340 bytes, on a 3.0 GHz dual-core Xeon.
pub fn netserv_2011(way: Way, bytes: u16) -> Option<f64> {
    let (small, sip) = match way {
        Way::Kernel => (786.0, 343.0),
        // Configuration 2, the base line of the paper; also what a packet goes through that no module wants.
        Way::Filtered | Way::NfqueueUnmatched => (641.0, 343.0),
        Way::NfqueueNull => (365.0, 213.0),
        // Configuration 4: the container with Java and no module.
        Way::AfxdpEmpty => (188.0, 117.0),
        Way::NfqueueMonitor | Way::AfxdpMonitor | Way::AfxdpRealTime | Way::NfqueueBundle | Way::AfxdpBundle => {
            (188.0, 111.0)
        }
        // Configuration 6; its NOTIFYs were let through, not answered.
        Way::AfxdpKeepAlive | Way::AfxdpKeepAliveBundle => return (bytes == 340).then_some(71.0),
        Way::Steered | Way::AfxdpNull | Way::AfxdpTwo | Way::AfxdpUnmatched | Way::XdpForward => return None,
    };
    match bytes {
        64 => Some(small),
        340 => Some(sip),
        _ => None,
    }
}

/// NetServ 2011, §9.2: what its keep-alive added to the delay of the kernel, in µs.
pub const NETSERV_2011_DELAY_US: f64 = 92.0;
/// NetServ 2011, §9.2: what one container takes, in MB. The curve of its figure 14 is not in its text.
pub const NETSERV_2011_CONTAINER_MB: f64 = 110.0;
/// AMnet 2003, figure 3 and its text: Mbit/s at 1460 bytes without service and with 1 to 4 loops over each packet. The
/// text has 92, 66 and 30 and "about 12 MBit/s per processing loop", from which the two between them follow.
pub const AMNET_FIGURE_3: [f64; 5] = [92.0, 66.0, 54.0, 42.0, 30.0];
/// AMnet 2003, on figure 4: 40 Mbit/s need packets of 700 bytes.
pub const AMNET_FIGURE_4: (f64, f64) = (700.0, 40.0);
