/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the XDP programs and the driver `afxdp` have in common. The driver's mirror is
 * `io/plane-afxdp/src/layout.rs`, which checks the sizes given in the map definitions. No header of the system is
 * needed, and no BTF.
 *
 * All shared fields are in network byte order, but for indices, counts and flags. */
#ifndef NETSERV_BPF_COMMON_H
#define NETSERV_BPF_COMMON_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NETWORK16(value) ((u16)(((value) & 0xff) << 8 | ((value) >> 8 & 0xff)))
#define NETWORK32(value) ((u32)__builtin_bswap32(value))
#else
#define NETWORK16(value) ((u16)(value))
#define NETWORK32(value) ((u32)(value))
#endif

/* include/uapi/linux/bpf.h */
enum map_type {
	MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_PREFIXES = 11, MAP_ARRAY_OF_MAPS = 12, MAP_XSK = 17, MAP_DEVICES = 25
};
#define MAP_NO_PREALLOC 1
#define MAP_MMAPABLE 1024
enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };
struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

/* Read by our own loader: what each map is like. */
struct map_definition {
	u32 type;
	u32 key_bytes;
	u32 value_bytes;
	u32 entries_max;
	u32 flags;
};

/* Combinations of masks; io/plane-afxdp/src/limits.rs has the same number. */
#define TUPLES_MAX 104
/* Bits by which most keys that are not there are known, as a power of two. */
#define SUMMARY_BITS_LOG 17
#define KEYS_MAX 131072
#define INTERFACES_MAX 1024
#define OWN_ADDRESSES_MAX 4096
/* io/plane-afxdp/src/limits.rs has the same number. */
#define SOCKETS_MAX 4096
/* Prefixes whose packets are counted; io/plane/src/limits.rs has the same number. */
#define COUNTED_PREFIXES_MAX 64
/* core/model/src/limits.rs has the same number. */
#define LANES_MAX 16
/* Extension headers that are walked, as core/wire does. */
#define EXTENSION_HEADERS_MAX 8
/* GIST (RFC 5971 §5.2), and what its messages start with: the business of the kernel's sockets and of the interceptor. */
#define SIGNALING_PORT 270
#define SIGNALING_MAGIC 0x4e04bda5

/* An address; IPv4 stands in the first word, and the rest is zero. */
union address {
	u32 words[4];
	u64 halves[2];
};

/* What is left of a packet under a tuple's masks. */
struct filter_key {
	union {
		struct {
			u8 slot;
			u8 version;
			u8 protocol;
			u8 unused;
			u16 source_port;
			u16 destination_port;
		};
		u64 head;
	};
	union address source;
	union address destination;
};

/* What a tuple needs of a packet. */
enum need { NEEDS_V4 = 1, NEEDS_V6 = 2, NEEDS_PORTS = 4 };

/* Filters that look at the same bits. */
struct tuple {
	/* The slot's place is empty here. */
	struct filter_key mask;
	/* The head of a key with the tuple's slot, and nothing else. */
	u64 slot;
	/* enum need */
	u32 needs;
	u32 unused;
};

/* Written by the driver while packets come, word by word. A tuple stays where it is. A place that is free needs both
 * versions, which no packet has; what it needs is written last. */
struct tuple_table {
	/* Places up to the last one that is taken. */
	u64 count;
	/* Nothing is forwarded: something is in the way, or may be. */
	u64 withheld;
	/* How many prefixes there are whose packets are counted. */
	u64 counted_prefixes;
	u64 unused[5];
	/* The bits of `summary_bit` for all keys of `filters`. */
	u64 summary[(1 << SUMMARY_BITS_LOG) / 64];
	struct tuple tuples[TUPLES_MAX];
};

/* A prefix of destinations. The longest one that a packet's destination is in has the packet. */
struct prefix {
	/* Those of the version's word, and those of the address. */
	u32 bits;
	/* 4 or 6. */
	u32 version;
	union address address;
};

/* What came for the destinations of a prefix. */
struct destination_count {
	u64 packets;
	/* Segments of TCP that ask for a connection. */
	u64 syns;
};

/* A device, or a VLAN on it. */
struct interface_key {
	u32 device;
	/* The tag's identifier; 0 for untagged frames. */
	u16 vlan;
	u16 unused;
};

struct interface {
	/* Frames for another station are no business of ours. */
	u8 station[6];
	/* enum interface_flag */
	u16 flags;
	/* The place of the device's first queue among the sockets. */
	u32 first_socket;
	u32 queues;
	/* Longer frames do not fit into the memory that is shared with the driver. */
	u32 frame_bytes_max;
};

enum interface_flag {
	/* Packets of the version that come in here may be forwarded in XDP. */
	FORWARDS_V4 = 1,
	FORWARDS_V6 = 2,
	/* Packets may lack their checksums, which only the kernel knows. */
	IS_VIRTUAL = 4,
	/* IPv4 packets come in only where the way back to their source leads out, or leads out somewhere. */
	CHECKS_SOURCE = 8,
	CHECKS_SOURCE_LOOSELY = 16,
	/* Signaling messages for other nodes go to the sockets. */
	INTERCEPTS = 32,
};

/* Written by the driver's lanes whenever they look for packets. */
struct heart {
	/* So many nanoseconds after its last beat a lane is taken for dead, and what is its own passes; 0 means never. */
	u64 silence_max;
	/* Queue q of each device is served by the lane q % lanes. */
	u64 lanes;
	/* The time of each lane's last beat: nanoseconds of the monotonic clock. */
	u64 beats[LANES_MAX];
};

/* What `filters` says of a key. */
enum wanted {
	WANTED = 1,
	/* A module that fails closed is among those that want it. */
	WANTED_CLOSED = 2
};

enum counter {
	/* Wanted packets that passed unseen: they are too long for the driver's memory, */
	COUNTER_TOO_LONG,
	/* nobody takes packets at the moment, */
	COUNTER_SILENT,
	/* or their queue has no socket. */
	COUNTER_NO_SOCKET,
	/* Packets that nobody wants and that were forwarded. */
	COUNTER_FORWARDED,
	/* Wanted packets that passed unseen: what is in them may not be finished. */
	COUNTER_UNFINISHED,
	/* Signaling for other nodes that was dropped, since nobody takes it at the moment: it would pass a node that is there. */
	COUNTER_SIGNALING_LOST,
	/* Of the wanted packets that the driver could not take, those that were dropped: a module that fails closed wants them. */
	COUNTER_CLOSED_LOST,
	COUNTERS
};

#endif
