// SPDX-License-Identifier: Apache-2.0
//! Flows as programs write them, and as GIST has them.

use netserv_model::application::{ApplicationFlow, FlowDirection, RoutingMethod};
use netserv_wire::gist::{Direction, LooseEnd, Mri, PathCoupled};

/// Returns the MRI of a flow, or what is wrong with the flow.
pub(crate) fn mri_of(flow: &ApplicationFlow) -> Result<Mri, &'static str> {
    let direction = match flow.direction {
        FlowDirection::Downstream => Direction::Downstream,
        FlowDirection::Upstream => Direction::Upstream,
    };
    let versions = "the flow's source and destination are of two versions of IP";
    match flow.method {
        RoutingMethod::PathCoupled => path_coupled(flow, direction).map(Mri::PathCoupled),
        RoutingMethod::LooseEnd if has_more(flow) => Err("a loose-end flow has addresses and a direction alone"),
        RoutingMethod::LooseEnd => {
            LooseEnd::new(flow.source, flow.destination, direction).map(Mri::LooseEnd).ok_or(versions)
        }
    }
}

/// Returns the flow of an MRI; nothing if its method is not known.
pub(super) fn flow_of(mri: &Mri) -> Option<ApplicationFlow> {
    let (source, destination) = mri.addresses()?;
    let direction = match mri.direction()? {
        Direction::Downstream => FlowDirection::Downstream,
        Direction::Upstream => FlowDirection::Upstream,
    };
    let flow = ApplicationFlow {
        method: RoutingMethod::LooseEnd,
        source,
        destination,
        direction,
        source_prefix: None,
        destination_prefix: None,
        protocol: None,
        source_port: None,
        destination_port: None,
        spi: None,
        dscp: None,
        flow_label: None,
    };
    let Mri::PathCoupled(coupled) = mri else { return Some(flow) };
    let whole = if source.is_ipv4() { 32 } else { 128 };
    Some(ApplicationFlow {
        method: RoutingMethod::PathCoupled,
        source_prefix: Some(coupled.source_prefix()).filter(|bits| *bits != whole),
        destination_prefix: Some(coupled.destination_prefix()).filter(|bits| *bits != whole),
        protocol: coupled.protocol(),
        source_port: coupled.source_port(),
        destination_port: coupled.destination_port(),
        spi: coupled.spi(),
        dscp: coupled.dscp(),
        flow_label: coupled.flow_label(),
        ..flow
    })
}

fn path_coupled(flow: &ApplicationFlow, direction: Direction) -> Result<PathCoupled, &'static str> {
    let ApplicationFlow { source, destination, source_port, destination_port, .. } = *flow;
    let bits_max = if source.is_ipv4() { 32 } else { 128 };
    let mut coupled = PathCoupled::new(source, destination)
        .ok_or("the flow's source and destination are of two versions of IP")?
        .with_direction(direction);
    let prefixes = [flow.source_prefix, flow.destination_prefix].map(|bits| bits.unwrap_or(bits_max));
    if prefixes.iter().any(|bits| *bits > bits_max) {
        return Err("a prefix of the flow is longer than an address");
    }
    coupled = coupled.with_prefixes(prefixes[0], prefixes[1]);
    let has_ports = source_port.is_some() || destination_port.is_some();
    coupled = match (flow.protocol, flow.spi) {
        (None, None) if !has_ports => coupled,
        (None, _) => return Err("ports and spi of the flow mean nothing without the protocol"),
        (Some(_), Some(_)) if has_ports => return Err("a flow with an spi has no ports"),
        (Some(protocol), Some(spi)) => coupled.with_spi(protocol, spi),
        (Some(protocol), None) if has_ports => coupled.with_ports(protocol, source_port, destination_port),
        (Some(protocol), None) => coupled.with_protocol(protocol),
    };
    if let Some(dscp) = flow.dscp {
        if dscp > DSCP_MAX {
            return Err("the flow's dscp has more than 6 bits");
        }
        coupled = coupled.with_dscp(dscp);
    }
    if let Some(label) = flow.flow_label {
        if source.is_ipv4() || label > FLOW_LABEL_MAX {
            return Err("the flow's flow_label is of IPv6, and has 20 bits");
        }
        coupled = coupled.with_flow_label(label);
    }
    Ok(coupled)
}

fn has_more(flow: &ApplicationFlow) -> bool {
    let ApplicationFlow { source_prefix, destination_prefix, protocol, source_port, destination_port, .. } = flow;
    let ApplicationFlow { spi, dscp, flow_label, .. } = flow;
    let bytes = [source_prefix, destination_prefix, protocol, dscp].into_iter().any(Option::is_some);
    let words = [spi, flow_label].into_iter().any(Option::is_some);
    bytes || words || source_port.is_some() || destination_port.is_some()
}

const DSCP_MAX: u8 = 0x3F;
const FLOW_LABEL_MAX: u32 = 0x000F_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = r#""source":"10.0.0.1","destination":"10.0.9.9","direction":"downstream""#;
    const V6: &str = r#""source":"fd00::1","destination":"fd00::9","direction":"upstream""#;

    #[test]
    fn flows_come_back_as_they_were() {
        for text in [
            format!("{{{V4}}}"),
            format!("{{{V6}}}"),
            format!("{{{V4},\"source_prefix\":24,\"destination_prefix\":0}}"),
            format!("{{{V4},\"protocol\":17,\"destination_port\":0}}"),
            format!("{{{V4},\"protocol\":6,\"source_port\":1,\"destination_port\":65535}}"),
            format!("{{{V6},\"protocol\":50,\"spi\":4294967295,\"dscp\":63,\"flow_label\":1048575}}"),
            format!("{{\"method\":\"loose-end\",{V6}}}"),
        ] {
            let flow: ApplicationFlow = serde_json::from_str(&text).unwrap();
            let back = flow_of(&mri_of(&flow).unwrap()).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), text);
        }
    }

    #[test]
    fn flows_that_are_none_are_refused() {
        for (text, named) in [
            (r#""source":"10.0.0.1","destination":"fd00::9","direction":"upstream""#.to_owned(), "two versions"),
            (format!("{V4},\"source_prefix\":33"), "longer than an address"),
            (format!("{V6},\"destination_prefix\":129"), "longer than an address"),
            (format!("{V4},\"source_port\":1"), "without the protocol"),
            (format!("{V4},\"spi\":1"), "without the protocol"),
            (format!("{V4},\"protocol\":50,\"spi\":1,\"source_port\":1"), "no ports"),
            (format!("{V4},\"dscp\":64"), "6 bits"),
            (format!("{V4},\"flow_label\":1"), "IPv6"),
            (format!("{V6},\"flow_label\":1048576"), "20 bits"),
            (format!("\"method\":\"loose-end\",{V4},\"protocol\":17"), "alone"),
            (
                r#""method":"loose-end","source":"10.0.0.1","destination":"fd00::9","direction":"upstream""#.to_owned(),
                "two versions",
            ),
        ] {
            let flow: ApplicationFlow = serde_json::from_str(&format!("{{{text}}}")).unwrap();
            let error = mri_of(&flow).unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
