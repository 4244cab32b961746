/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the XDP programs have in common: reading frames, looking filters up, and the way to the node's AF_XDP sockets.
 *
 * Tuple space search: filters that look at the same bits share a tuple, and one look into a hash table says whether
 * any filter of the tuple matches. The cost depends on the number of tuples, not on that of filters. Most looks are
 * spared by a summary of all keys: what has no bit there is in no filter.
 *
 * The kernel keeps: what is no IP, no whole packet or too long for the driver, frames for other stations, tagged
 * frames of VLANs that are no interface of the node, packets for and from the node itself, everything link-local,
 * multicast, signaling that is not intercepted, and on devices made of software what may not be finished inside. Later fragments have no ports,
 * so that filters with ports do not match them. */
#ifndef NETSERV_BPF_CLASSIFY_H
#define NETSERV_BPF_CLASSIFY_H

#include "common.h"

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const redirect_map)(void *map, u32 key, u64 flags) = (void *)51;
static u64 (*const coarse_time)(void) = (void *)160;

SECTION("maps") struct map_definition tuples = {
	MAP_ARRAY, sizeof(u32), sizeof(struct tuple_table), 1, MAP_MMAPABLE
};
/* No program looks into it: to exchange what it holds has the kernel wait for the programs that run. */
SECTION("maps") struct map_definition grace = { MAP_ARRAY_OF_MAPS, sizeof(u32), sizeof(u32), 1, 0 };
/* What `grace` holds. */
SECTION("maps") struct map_definition inner = { MAP_ARRAY, sizeof(u32), sizeof(u32), 1, 0 };
SECTION("maps") struct map_definition filters = {
	MAP_HASH, sizeof(struct filter_key), sizeof(u8), KEYS_MAX, MAP_NO_PREALLOC
};
SECTION("maps") struct map_definition interfaces = {
	MAP_HASH, sizeof(struct interface_key), sizeof(struct interface), INTERFACES_MAX, 0
};
SECTION("maps") struct map_definition own = {
	MAP_HASH, sizeof(union address), sizeof(u8), OWN_ADDRESSES_MAX, MAP_NO_PREALLOC
};
SECTION("maps") struct map_definition sockets = { MAP_XSK, sizeof(u32), sizeof(u32), SOCKETS_MAX, 0 };
SECTION("maps") struct map_definition heart = { MAP_ARRAY, sizeof(u32), sizeof(struct heart), 1, MAP_MMAPABLE };
/* The place of each prefix among `destination_counts`. */
SECTION("maps") struct map_definition prefixes = {
	MAP_PREFIXES, sizeof(struct prefix), sizeof(u32), COUNTED_PREFIXES_MAX, MAP_NO_PREALLOC
};
SECTION("maps") struct map_definition destination_counts = {
	MAP_PERCPU_ARRAY, sizeof(u32), sizeof(struct destination_count), COUNTED_PREFIXES_MAX, 0
};
SECTION("maps") struct map_definition counters = { MAP_PERCPU_ARRAY, sizeof(u32), sizeof(u64), COUNTERS, 0 };

enum protocol { IPV4_IN_IP = 4, TCP = 6, UDP = 17, DCCP = 33, IPV6_IN_IP = 41, GRE = 47, SCTP = 132, UDP_LITE = 136 };
/* Ports of UDP that tunnels go to. */
enum tunnel_port { GENEVE_PORT = 6081, VXLAN_PORT = 4789, VXLAN_OLD_PORT = 8472 };
enum extension {
	HOP_BY_HOP = 0, ROUTING = 43, FRAGMENT = 44, AUTHENTICATION = 51, DESTINATION = 60, MOBILITY = 135, HIP = 139,
	SHIM6 = 140
};

struct ethernet_header {
	u8 destination[6];
	u8 source[6];
	u16 type;
} __attribute__((packed));

struct vlan_tag {
	u16 control;
	u16 type;
};

struct ipv4_header {
	u8 version_and_length;
	u8 service;
	u16 total_bytes;
	u16 identification;
	u16 fragment;
	u8 ttl;
	u8 protocol;
	u16 checksum;
	u32 source;
	u32 destination;
};

struct ipv6_header {
	u32 version_and_flow;
	u16 payload_bytes;
	u8 next;
	u8 hop_limit;
	u32 source[4];
	u32 destination[4];
};

struct extension_header {
	u8 next;
	u8 length;
	u16 fragment;
};

struct ports {
	u16 source;
	u16 destination;
};

/* What filters look at in one packet. */
struct flow {
	union address source;
	union address destination;
	u16 source_port;
	u16 destination_port;
	u8 version;
	u8 protocol;
	u8 has_ports;
	/* Where in the frame the upper-layer header starts and the packet ends; only if it has ports. */
	u32 upper;
	u32 end;
};

/* Offsets are checked against this before they are added to a pointer, since the verifier wants a bound. */
#define OFFSET_MAX 0x7fff

/* Reads the ports at an offset, if the protocol has them and they lie before the end of the packet. */
INLINE void read_ports(struct flow *flow, void *data, void *data_end, u32 offset, u32 end)
{
	struct ports *ports;

	switch (flow->protocol) {
	case TCP:
	case UDP:
	case DCCP:
	case SCTP:
	case UDP_LITE:
		break;
	default:
		return;
	}
	if (offset > OFFSET_MAX || offset + sizeof(*ports) > end)
		return;
	ports = data + offset;
	if ((void *)(ports + 1) > data_end)
		return;
	flow->source_port = ports->source;
	flow->destination_port = ports->destination;
	flow->has_ports = 1;
	flow->upper = offset;
	flow->end = end;
}

/* Returns 0 if this is no whole packet, or one that is not forwarded. */
INLINE int parse_ipv4(struct flow *flow, void *data, void *data_end, u32 offset)
{
	struct ipv4_header *header = data + offset;
	u32 header_bytes, total_bytes, destination;

	if ((void *)(header + 1) > data_end)
		return 0;
	header_bytes = (header->version_and_length & 0x0f) * 4;
	total_bytes = NETWORK16(header->total_bytes);
	if (header->version_and_length >> 4 != 4 || header_bytes < sizeof(*header) || total_bytes < header_bytes ||
	    total_bytes > (u32)(data_end - data) - offset)
		return 0;
	destination = NETWORK32(header->destination);
	if (destination >= 0xe0000000 || destination >> 24 == 127 || destination >> 24 == 0 || destination >> 16 == 0xa9fe)
		return 0;
	flow->version = 4;
	flow->source.words[0] = header->source;
	flow->destination.words[0] = header->destination;
	flow->protocol = header->protocol;
	if (!(header->fragment & NETWORK16(0x1fff)))
		read_ports(flow, data, data_end, offset + header_bytes, offset + total_bytes);
	return 1;
}

INLINE int is_extension(u8 protocol)
{
	return protocol == HOP_BY_HOP || protocol == ROUTING || protocol == FRAGMENT || protocol == AUTHENTICATION ||
	       protocol == DESTINATION || protocol == MOBILITY || protocol == HIP || protocol == SHIM6;
}

/* For `nothing` see `blur`. */
INLINE int parse_ipv6(struct flow *flow, void *data, void *data_end, u32 offset, u32 nothing)
{
	struct ipv6_header *header = data + offset;
	u32 end, first, later = 0;
	int i;

	if ((void *)(header + 1) > data_end)
		return 0;
	end = offset + sizeof(*header) + NETWORK16(header->payload_bytes);
	if (NETWORK32(header->version_and_flow) >> 28 != 6 || end > (u32)(data_end - data))
		return 0;
	first = NETWORK32(header->destination[0]);
	/* Multicast, link-local, and ::/96 with the unspecified and the loopback address. */
	if (first >> 24 == 0xff || first >> 22 == 0xfe80 >> 6 ||
	    !(header->destination[0] | header->destination[1] | header->destination[2]))
		return 0;
	if (NETWORK32(header->source[0]) >> 22 == 0xfe80 >> 6)
		return 0;
	flow->version = 6;
	__builtin_memcpy(&flow->source, header->source, sizeof(flow->source));
	__builtin_memcpy(&flow->destination, header->destination, sizeof(flow->destination));
	flow->protocol = header->next;
	offset += sizeof(*header);
	for (i = 0; i <= EXTENSION_HEADERS_MAX; i++) {
		struct extension_header *extension;

		if (later || !is_extension(flow->protocol))
			break;
		if (offset > OFFSET_MAX || offset + sizeof(*extension) > end)
			return 0;
		extension = data + offset;
		if ((void *)(extension + 1) > data_end)
			return 0;
		if (flow->protocol == FRAGMENT) {
			later = extension->fragment & NETWORK16(0xfff8);
			offset += 8;
		} else if (flow->protocol == AUTHENTICATION) {
			/* RFC 4302 §2.2: this one counts words, less two. */
			offset += 4 * (extension->length + 2);
		} else {
			offset += 8 * (extension->length + 1);
		}
		if (offset > end)
			return 0;
		offset ^= nothing;
		flow->protocol = extension->next;
	}
	if (i > EXTENSION_HEADERS_MAX)
		return 0;
	if (!later)
		read_ports(flow, data, data_end, offset, end);
	return 1;
}

/* Returns the head of a key with all that the packet shows, and no slot. */
INLINE u64 head_of(const struct flow *flow)
{
	u64 ports = (u64)flow->source_port, head = (u64)flow->version << 8 | (u64)flow->protocol << 16;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return head | ports << 32 | (u64)flow->destination_port << 48;
#else
	return __builtin_bswap64(head) | ports << 16 | flow->destination_port;
#endif
}

/* Returns the bit of a key in the summary; io/plane-afxdp/src/layout.rs has the same. */
INLINE u32 summary_bit(const struct filter_key *key)
{
	u64 sum = key->head * 0x61c88647 + key->source.halves[0] * 0x7feb352d + key->destination.halves[0] * 0x5bd1e995 +
		  key->source.halves[1] * 0x27d4eb2f + key->destination.halves[1] * 0x165667b1;

	sum ^= sum >> 32;
	return (u32)((sum * 0x9e3779b97f4a7c15ULL) >> (64 - SUMMARY_BITS_LOG));
}

/* Returns whether a filter wants a packet; of at least such a kind. */
INLINE int is_wanted(const struct flow *flow, u8 least)
{
	struct tuple_table *table;
	u8 *wanted;
	u64 head = head_of(flow);
	u32 zero = 0, i, lacks = (flow->version == 4 ? NEEDS_V6 : NEEDS_V4) | (flow->has_ports ? 0 : NEEDS_PORTS);

	table = map_lookup(&tuples, &zero);
	if (!table)
		return 0;
	for (i = 0; i < TUPLES_MAX; i++) {
		const struct tuple *tuple = &table->tuples[i];
		struct filter_key key;
		u32 bit;

		if (i >= table->count)
			return 0;
		if (tuple->needs & lacks)
			continue;
		key.head = (head & tuple->mask.head) | tuple->slot;
		key.source.halves[0] = flow->source.halves[0] & tuple->mask.source.halves[0];
		key.source.halves[1] = flow->source.halves[1] & tuple->mask.source.halves[1];
		key.destination.halves[0] = flow->destination.halves[0] & tuple->mask.destination.halves[0];
		key.destination.halves[1] = flow->destination.halves[1] & tuple->mask.destination.halves[1];
		bit = summary_bit(&key);
		if (!(table->summary[bit >> 6] >> (bit & 63) & 1))
			continue;
		wanted = map_lookup(&filters, &key);
		if (wanted && *wanted >= least)
			return 1;
	}
	return 0;
}

INLINE int same_station(const u8 *a, const u8 *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3] && a[4] == b[4] && a[5] == b[5];
}

INLINE void count(u32 counter)
{
	u64 *counted = map_lookup(&counters, &counter);

	if (counted)
		*counted += 1;
}

/* A frame with an IP packet that may be forwarded. */
struct frame {
	struct flow flow;
	struct interface_key key;
	/* Where the packet starts. */
	u32 offset;
};

/* Has the verifier forget what it knows of a frame, so that the paths by which it was read, of which there are many, are one
 * from here on: it does not know that `nothing` is zero, and pointers into the packet are loaded anew. Else it walks the loop
 * over tuples once for each path: 578,000 instructions and 0.7 s in place of 38,000 and 0.05 s. */
INLINE void blur(struct frame *frame, u32 nothing)
{
	frame->offset ^= nothing;
	frame->flow.upper ^= nothing;
	frame->flow.end ^= nothing;
	frame->flow.version ^= nothing;
	frame->flow.protocol ^= nothing;
	frame->flow.has_ports ^= nothing;
	frame->flow.source_port ^= nothing;
	frame->flow.destination_port ^= nothing;
	frame->flow.source.halves[0] ^= nothing;
	frame->flow.source.halves[1] ^= nothing;
	frame->flow.destination.halves[0] ^= nothing;
	frame->flow.destination.halves[1] ^= nothing;
	frame->key.vlan ^= nothing;
	__asm__ volatile("" ::: "memory");
}

/* Returns 0 if the frame has no such packet. */
INLINE int parse_frame(struct frame *frame, struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *data_end = (void *)(long)context->data_end;
	struct ethernet_header *ethernet = data;
	/* Both loads give the same number. */
	u32 nothing = *(volatile u32 *)&context->ingress_ifindex - *(volatile u32 *)&context->ingress_ifindex;
	int parsed = 0;
	u32 offset = sizeof(*ethernet);
	u16 type;

	if ((void *)(ethernet + 1) > data_end)
		return 0;
	frame->key.device = context->ingress_ifindex;
	type = ethernet->type;
	if (type == NETWORK16(0x8100)) {
		struct vlan_tag *tag = data + offset;

		if ((void *)(tag + 1) > data_end)
			return 0;
		frame->key.vlan = tag->control & NETWORK16(0x0fff);
		type = tag->type;
		offset += sizeof(*tag);
	}
	frame->offset = offset;
	/* A second tag is none of these. */
	if (type == NETWORK16(0x0800))
		parsed = parse_ipv4(&frame->flow, data, data_end, offset);
	else if (type == NETWORK16(0x86dd))
		parsed = parse_ipv6(&frame->flow, data, data_end, offset, nothing);
	if (parsed)
		blur(frame, nothing);
	return parsed;
}

/* Returns 0 if the lane that serves a queue has not looked for packets for too long. */
INLINE int is_alive(u32 queue)
{
	struct heart *state;
	u32 zero = 0, lanes, lane;

	state = map_lookup(&heart, &zero);
	if (!state)
		return 0;
	if (!state->silence_max)
		return 1;
	lanes = (u32)state->lanes;
	lane = lanes > 1 ? queue % lanes : 0;
	if (lane >= LANES_MAX)
		return 0;
	return (s64)(coarse_time() - state->beats[lane]) <= (s64)state->silence_max;
}

INLINE int is_signaling(const struct flow *flow)
{
	return flow->protocol == UDP && flow->has_ports && flow->destination_port == NETWORK16(SIGNALING_PORT);
}

/* Signaling is for the kernel's sockets and the interceptor, and packets with a source of the node's own that come in
 * from outside are for the kernel to refuse. */
INLINE int is_for_kernel(const struct flow *flow)
{
	return is_signaling(flow) || map_lookup(&own, &flow->source);
}

/* Returns the interface where a frame came in, if it is one of the node's and the frame is for the node's station. */
INLINE struct interface *find_interface(const struct frame *frame, struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *data_end = (void *)(long)context->data_end;
	struct ethernet_header *ethernet = data;
	struct interface *interface = map_lookup(&interfaces, &frame->key);

	if (!interface || (void *)(ethernet + 1) > data_end)
		return 0;
	return same_station(interface->station, ethernet->destination) ? interface : 0;
}

/* Whether the sender may have left a checksum inside the packet, or that of SCTP, to a card that is not there. The
 * kernel keeps note of that beside the packet; in XDP nothing shows it, and the note is lost with a redirect. */
INLINE int may_be_unfinished(const struct interface *interface, const struct flow *flow)
{
	if (!(interface->flags & IS_VIRTUAL))
		return 0;
	if (flow->protocol == UDP)
		return flow->has_ports && (flow->destination_port == NETWORK16(VXLAN_PORT) ||
					   flow->destination_port == NETWORK16(VXLAN_OLD_PORT) ||
					   flow->destination_port == NETWORK16(GENEVE_PORT));
	return flow->protocol == IPV4_IN_IP || flow->protocol == IPV6_IN_IP || flow->protocol == GRE ||
	       flow->protocol == SCTP;
}

/* RFC 9293 §3.1: where the flags are, and two of them. */
#define TCP_FLAGS_OFFSET 13
#define TCP_SYN 0x02
#define TCP_ACK 0x10

/* Looks at copies, of which the verifier does not know that they are: what it finds out about them here would make paths of
 * the rest of the program. */
INLINE int is_opening(const struct flow *flow, struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *data_end = (void *)(long)context->data_end;
	/* Both loads give the same number. */
	u32 nothing = *(volatile u32 *)&context->ingress_ifindex - *(volatile u32 *)&context->ingress_ifindex;
	u32 protocol = flow->protocol ^ nothing, has_ports = flow->has_ports ^ nothing;
	u32 offset = (flow->upper ^ nothing) + TCP_FLAGS_OFFSET, end = flow->end ^ nothing;
	u8 *flags;

	if (protocol != TCP || !has_ports || offset > OFFSET_MAX || offset + sizeof(*flags) > end)
		return 0;
	flags = data + offset;
	return (void *)(flags + 1) <= data_end && (*flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

/* Counts a packet by its destination, if that is in a prefix that somebody asks about. */
INLINE void count_destination(const struct frame *frame, struct xdp_md *context)
{
	struct destination_count *counted;
	struct tuple_table *table;
	struct prefix prefix;
	u32 zero = 0, *place;

	table = map_lookup(&tuples, &zero);
	if (!table || !table->counted_prefixes)
		return;
	if (!find_interface(frame, context))
		return;
	prefix.bits = 8 * (sizeof(prefix) - sizeof(prefix.bits));
	prefix.version = frame->flow.version;
	prefix.address = frame->flow.destination;
	place = map_lookup(&prefixes, &prefix);
	if (!place)
		return;
	counted = map_lookup(&destination_counts, place);
	if (!counted)
		return;
	counted->packets += 1;
	counted->syns += is_opening(&frame->flow, context);
}

INLINE u32 frame_bytes(const struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *data_end = (void *)(long)context->data_end;

	/* Pointers have 64 bits: the verifier takes no half of one. */
	__asm__ volatile("" : "+r"(data), "+r"(data_end));
	return (u32)(data_end - data);
}

/* Leads a packet to a socket; returns the verdict. */
INLINE int lead(const struct interface *interface, u32 frame_bytes, u32 queue)
{
	int verdict;

	if (frame_bytes > interface->frame_bytes_max) {
		count(COUNTER_TOO_LONG);
		return XDP_PASS;
	}
	if (!is_alive(queue)) {
		count(COUNTER_SILENT);
		return XDP_PASS;
	}
	/* Without a socket in this place, as when its owner was killed, the packet passes. */
	verdict = XDP_PASS;
	if (queue < interface->queues)
		verdict = redirect_map(&sockets, interface->first_socket + queue, XDP_PASS);
	if (verdict == XDP_PASS)
		count(COUNTER_NO_SOCKET);
	return verdict;
}

/* Leads a wanted packet to a socket; returns the verdict. */
INLINE int take(const struct frame *frame, const struct interface *interface, u32 frame_bytes, u32 queue)
{
	if (map_lookup(&own, &frame->flow.destination) || is_for_kernel(&frame->flow))
		return XDP_PASS;
	if (may_be_unfinished(interface, &frame->flow))
		count(COUNTER_UNFINISHED);
	else if (lead(interface, frame_bytes, queue) != XDP_PASS)
		return XDP_REDIRECT;
	/* Nobody sees it. */
	if (!is_wanted(&frame->flow, WANTED_CLOSED))
		return XDP_PASS;
	count(COUNTER_CLOSED_LOST);
	return XDP_DROP;
}

/* Leads a signaling message for another node to a socket; returns the verdict. What is not whole passes. */
INLINE int intercept(const struct frame *frame, const struct interface *interface, struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *data_end = (void *)(long)context->data_end;
	const struct flow *flow = &frame->flow;
	u32 offset = flow->upper + 8;
	u32 *magic;

	if (!(interface->flags & INTERCEPTS) || offset > OFFSET_MAX || offset + sizeof(*magic) > flow->end)
		return XDP_PASS;
	magic = data + offset;
	if ((void *)(magic + 1) > data_end || *magic != NETWORK32(SIGNALING_MAGIC))
		return XDP_PASS;
	if (map_lookup(&own, &flow->destination) || map_lookup(&own, &flow->source))
		return XDP_PASS;
	/* A node that hangs is on the path all the same: whoever asks for nodes must not hear that there is none. One that ended has no
	 * program here. */
	if (!is_alive(context->rx_queue_index)) {
		count(COUNTER_SIGNALING_LOST);
		return XDP_DROP;
	}
	return lead(interface, frame_bytes(context), context->rx_queue_index);
}

#endif
