// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// As classify.c, and forwards the packets that no filter wants by the kernel's own tables. The kernel keeps all that is
// more than to look up, count down and send: what it would answer with an error, cut up, filter out or ask a neighbour
// for.

#include "classify.h"

/* The kernel lends its tables to programs under its own licence only, which this one is offered under, too. */
static long (*const fib_lookup)(void *context, void *parameters, int bytes, u32 flags) = (void *)69;

/* The devices that can send what another has received: a redirect to any other would be lost. */
SECTION("maps") struct map_definition targets = { MAP_DEVICES, sizeof(u32), sizeof(u32), INTERFACES_MAX, 0 };

enum family { FAMILY_V4 = 2, FAMILY_V6 = 10 };

/* struct bpf_fib_lookup of include/uapi/linux/bpf.h */
struct lookup {
	u8 family;
	u8 protocol;
	u16 source_port;
	u16 destination_port;
	u16 total_bytes;
	u32 device;
	/* The type of service, or the IPv6 flow. */
	union {
		u8 service;
		u32 flow;
	};
	union address source;
	union address destination;
	u32 vlan;
	u8 source_station[6];
	u8 destination_station[6];
};

/* Folds a sum of 16-bit words. */
INLINE u16 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)((sum & 0xffff) + (sum >> 16));
}

/* Whether the checksum is what a sender leaves there for its card to complete, or looks like it by chance. */
INLINE int lacks_checksum(const struct flow *flow, void *data, void *data_end)
{
	u32 offset = flow->upper, bytes = flow->end - flow->upper;
	u64 sum = 0;
	u16 *field;
	int i;

	if (!flow->has_ports || (flow->protocol != UDP && flow->protocol != TCP))
		return 0;
	offset += flow->protocol == UDP ? 6 : 16;
	if (offset > OFFSET_MAX)
		return 1;
	field = data + offset;
	if ((void *)(field + 1) > data_end)
		return 1;
	for (i = 0; i < 4; i++)
		sum += (u64)flow->source.words[i] + flow->destination.words[i];
	sum += NETWORK16(flow->protocol) + NETWORK16(bytes);
	return *field == fold(sum);
}

/* A source that no machine elsewhere can have. */
INLINE int is_impossible_source(const struct flow *flow)
{
	u32 first = NETWORK32(flow->source.words[0]);

	if (flow->version == 4)
		return first >> 24 == 0 || first >> 24 == 127 || first >= 0xe0000000;
	/* Multicast, ::/96, and IPv4 in disguise. */
	return first >> 24 == 0xff || (!(flow->source.words[0] | flow->source.words[1]) &&
				       (!flow->source.words[2] || flow->source.words[2] == NETWORK32(0xffff)));
}

/* Fills in what the kernel's tables ask for; returns 0 if the packet is not one to be forwarded here. */
INLINE int describe(struct lookup *lookup, const struct flow *flow, void *packet, void *data_end)
{
	struct ipv4_header *v4 = packet;
	struct ipv6_header *v6 = packet;

	if (flow->version == 4) {
		u32 *words = packet;

		if ((void *)(v4 + 1) > data_end || v4->version_and_length != 0x45 || v4->ttl <= 1 ||
		    fold((u64)words[0] + words[1] + words[2] + words[3] + words[4]) != 0xffff)
			return 0;
		lookup->family = FAMILY_V4;
		lookup->service = v4->service;
		lookup->total_bytes = NETWORK16(v4->total_bytes);
	} else {
		if ((void *)(v6 + 1) > data_end || v6->next == HOP_BY_HOP || v6->hop_limit <= 1)
			return 0;
		lookup->family = FAMILY_V6;
		lookup->flow = v6->version_and_flow & NETWORK32(0x0fffffff);
		lookup->total_bytes = NETWORK16(v6->payload_bytes) + sizeof(*v6);
	}
	lookup->protocol = flow->protocol;
	lookup->source_port = flow->source_port;
	lookup->destination_port = flow->destination_port;
	lookup->source = flow->source;
	lookup->destination = flow->destination;
	return 1;
}

/* Whether the way back to the source of a packet with this type of service is as the interface demands. */
INLINE int is_source_right(struct xdp_md *context, const struct interface *interface, const struct flow *flow,
			   u8 service)
{
	struct lookup back = { 0 };

	if (flow->version != 4 || !(interface->flags & (CHECKS_SOURCE | CHECKS_SOURCE_LOOSELY)))
		return 1;
	back.family = FAMILY_V4;
	back.service = service;
	back.source = flow->destination;
	back.destination = flow->source;
	back.device = context->ingress_ifindex;
	if (fib_lookup(context, &back, sizeof(back), 0))
		return 0;
	return !(interface->flags & CHECKS_SOURCE) || back.device == context->ingress_ifindex;
}

/* Counts down the packet's time to live and addresses the frame to the next hop, which may be of the other version. */
INLINE void rewrite(const struct flow *flow, const struct lookup *lookup, void *data, void *packet)
{
	struct ethernet_header *ethernet = data;
	struct ipv4_header *v4 = packet;
	struct ipv6_header *v6 = packet;

	if (flow->version == 4) {
		/* RFC 1624: the sum is one less in its first byte, its complement one more. */
		u32 checksum = v4->checksum + NETWORK16(0x0100);

		v4->checksum = (u16)(checksum + (checksum >= 0xffff));
		v4->ttl--;
	} else {
		v6->hop_limit--;
	}
	__builtin_memcpy(ethernet->destination, lookup->destination_station, 6);
	__builtin_memcpy(ethernet->source, lookup->source_station, 6);
}

/* Forwards a packet that nobody wants, if that is simple; returns the verdict. */
INLINE int forward(struct xdp_md *context, const struct frame *frame, const struct interface *interface)
{
	void *data = (void *)(long)context->data, *data_end = (void *)(long)context->data_end;
	void *packet = data + sizeof(struct ethernet_header);
	const struct flow *flow = &frame->flow;
	struct lookup lookup = { 0 };
	struct tuple_table *table;
	u32 zero = 0;
	u8 service;

	/* The first lane follows what forwarding depends on. */
	if (!(interface->flags & (flow->version == 4 ? FORWARDS_V4 : FORWARDS_V6)) || frame->key.vlan ||
	    frame->offset != sizeof(struct ethernet_header) || !is_alive(0) || is_for_kernel(flow) ||
	    is_impossible_source(flow))
		return XDP_PASS;
	table = map_lookup(&tuples, &zero);
	if (!table || table->withheld)
		return XDP_PASS;
	if (may_be_unfinished(interface, flow) ||
	    (interface->flags & IS_VIRTUAL && lacks_checksum(flow, data, data_end)))
		return XDP_PASS;
	if (!describe(&lookup, flow, packet, data_end))
		return XDP_PASS;
	lookup.device = context->ingress_ifindex;
	/* The answer takes the place of the question: the gateway that of the destination, its version that of the packet,
	 * the route's metric that of the service. */
	service = lookup.service;
	/* Anything but 0 is for the kernel: no route, a neighbour to be asked for, a packet to be cut. A packet that goes
	 * back where it came from may be worth an advice to its sender. */
	if (fib_lookup(context, &lookup, sizeof(lookup), 0) || lookup.device == context->ingress_ifindex ||
	    !is_source_right(context, interface, flow, service))
		return XDP_PASS;
	if (redirect_map(&targets, lookup.device, XDP_PASS) != XDP_REDIRECT)
		return XDP_PASS;
	rewrite(flow, &lookup, data, packet);
	count(COUNTER_FORWARDED);
	return XDP_REDIRECT;
}

SECTION("xdp") int classify(struct xdp_md *context)
{
	struct frame frame = { 0 };
	struct interface *interface;
	int verdict = XDP_PASS, wanted;

	if (!parse_frame(&frame, context))
		goto out;
	wanted = is_wanted(&frame.flow, WANTED);
	count_destination(&frame, context);
	interface = find_interface(&frame, context);
	if (!interface)
		goto out;
	if (is_signaling(&frame.flow))
		verdict = intercept(&frame, interface, context);
	else if (wanted)
		verdict = take(&frame, interface, frame_bytes(context), context->rx_queue_index);
	else
		verdict = forward(context, &frame, interface);
out:
	return verdict;
}
