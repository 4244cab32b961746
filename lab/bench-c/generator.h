/* SPDX-License-Identifier: Apache-2.0 */
/* What the generator in the kernel (generator.bpf.c) and the program that steers it (trial.c) share. */
#ifndef NETSERV_BENCH_GENERATOR_H
#define NETSERV_BENCH_GENERATOR_H

#include <stdint.h>

#define HEADER_BYTES 42 /* Ethernet, IPv4, UDP */
#define V6_HEADER_BYTES 62 /* Ethernet, IPv6, UDP */
#define SIZES_MAX 3 /* of a mix */
#define WAYS_MAX 2 /* there, and back */
#define OUTPUTS_MAX 16
#define MIX_BYTES { 64, 570, 1500 } /* of the IP packets of an IMIX: 7, 4 and 1 of 12 */
#define MIX_TURN 12
#define MIX_ORDER 0x020010101010ull /* four bits each, the first packet's lowest */
#define PAYLOAD_WORDS 368 /* of 4 bytes */

struct generator_state {
	/* Set before it runs. */
	uint64_t step_ps; /* between two packets; 0: as fast as possible */
	uint64_t warm_up; /* so many packets come before, at half the rate; they count, but not for rate and latencies */
	uint64_t length_ns; /* of what counts */
	uint64_t late_ns; /* what it catches up at most */
	uint64_t gap_ns; /* from what time on it counts that it was not asked */
	uint32_t interface;
	uint32_t back_interface; /* that every second packet is sent out of; 0: none is */
	uint32_t run; /* in network byte order */
	uint32_t port, ports, burst;
	uint32_t payload_words; /* 0: a probe is the payload */
	uint32_t flows; /* source ports that take turns */
	uint32_t sources; /* addresses that take turns after them; the identification of IPv4 evens the checksum out */
	uint32_t outputs; /* destination addresses that take turns, the checksum as before */
	uint32_t is_v6;
	uint32_t is_queued; /* frames go to the queue of a core, and not out of the interface */
	uint32_t core;
	uint32_t is_mix; /* whether all sizes are sent, or the first one only */
	uint32_t frame_bytes[SIZES_MAX];
	uint64_t header[WAYS_MAX][SIZES_MAX][V6_HEADER_BYTES / 8 + 1];
	uint32_t payload[PAYLOAD_WORDS];
	/* What it did. */
	uint64_t paced; /* packets since start_ns */
	uint64_t start_ns;
	uint64_t begin_ns; /* when the first packet that counts was sent */
	uint64_t end_ns; /* nothing is sent from here on */
	uint64_t packets; /* all that were sent */
	uint64_t waits; /* times that nothing was due, or all was sent */
	uint64_t early; /* times that nothing was due yet while packets count */
	uint64_t asked_ns; /* when it was asked last */
	uint64_t gaps; /* times that it was not asked for gap_ns or longer while packets count */
	uint64_t gaps_ns; /* how long, all together */
	uint64_t longest_gap_ns;
};

/* Of the program that takes them from there. */
struct arrival_state {
	uint64_t taken; /* frames, all together */
	uint32_t interface;
};

#endif
