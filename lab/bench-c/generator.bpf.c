/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator: an XDP program that the kernel runs on frames of its own making (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18)
 * and that sends them out of an interface. It makes about six million packets per second on a core that needs one
 * microsecond to forward one, so that next to nothing of what is measured is the generator's. While nothing is due it
 * refuses the frame, and is asked again.
 *
 * With a queue of another core it puts frames there, and that core sends them out of the interface (arrival.bpf.c).
 */
#include "generator.h"

#define SECTION(name) __attribute__((section(name), used))
#define DROP 1
#define FIRST_SOURCE 40000
#define PROBE_MAGIC 0x5250534eu /* as in common.h, in network byte order */

struct xdp_md {
	uint32_t data, data_end, data_meta, ingress_interface, queue, egress_interface;
};

static uint64_t (*const ktime_get_ns)(void) = (void *)5;
static long (*const redirect)(uint32_t interface, uint64_t flags) = (void *)23;
static long (*const redirect_map)(void *map, uint64_t key, uint64_t flags) = (void *)51;
static long (*const adjust_tail)(struct xdp_md *context, int bytes) = (void *)65;

struct generator_state state;
/* In its place comes the map of cores. */
__attribute__((section("maps"))) uint64_t cores;

/* Notes how long the generator was not asked: a pause of the machine, or of whatever else runs on its core. */
static __attribute__((always_inline)) void note_gap(uint64_t now)
{
	uint64_t gap = now - state.asked_ns;

	state.asked_ns = now;
	if (!state.begin_ns || gap < state.gap_ns)
		return;
	state.gaps++;
	state.gaps_ns += gap;
	if (gap > state.longest_gap_ns)
		state.longest_gap_ns = gap;
}

/* Whether a packet is due. */
static __attribute__((always_inline)) int is_due(uint64_t now)
{
	if (!state.start_ns)
		state.start_ns = now;
	if (state.end_ns && now >= state.end_ns)
		return 0;
	note_gap(now);
	uint64_t step_ps = state.packets < state.warm_up ? 2 * state.step_ps : state.step_ps;
	uint64_t due = state.start_ns + state.paced * step_ps / 1000;

	if (now < due) {
		if (state.begin_ns)
			state.early++;
		return 0;
	}
	if (now - due > state.late_ns) {
		state.start_ns = now;
		state.paced = 0;
	}
	return 1;
}

/* Adds to the lower half of an IPv4 address of a frame, and takes the same from the identification. */
static __attribute__((always_inline)) void move_on(char *address, char *identification, uint16_t by)
{
	uint16_t *low = (uint16_t *)(address + 2), *even = (uint16_t *)identification;

	*low = __builtin_bswap16((uint16_t)(__builtin_bswap16(*low) + by));
	*even = __builtin_bswap16((uint16_t)(__builtin_bswap16(*even) - by));
}

SECTION("program") int generate(struct xdp_md *context)
{
	uint64_t now = ktime_get_ns();

	if (!is_due(now)) {
		state.waits++;
		return DROP;
	}
	uint64_t number = state.packets;
	uint32_t size = 0, way = state.back_interface ? number & 1 : 0;

	if (state.is_mix) {
		size = (MIX_ORDER >> (4 * (number % MIX_TURN))) & 0xf;
		if (size >= SIZES_MAX)
			return DROP;
		/* Each frame comes as long as the longest. */
		if (adjust_tail(context, (int)(state.frame_bytes[size] - state.frame_bytes[SIZES_MAX - 1])) < 0)
			return DROP;
	}
	/* Not by packed structures, which clang writes byte by byte. */
	char *data = (char *)(long)context->data, *data_end = (char *)(long)context->data_end, *probe;
	uint16_t source = __builtin_bswap16((uint16_t)(FIRST_SOURCE + number % (state.flows ? state.flows : 1)));
	uint16_t port = __builtin_bswap16((uint16_t)(state.port + number / (state.burst ? state.burst : 1) %
								 (state.ports ? state.ports : 1)));

	/* The frame may have been sent before, and the kernel has written into it. */
	if (state.is_v6) {
		if (data + V6_HEADER_BYTES + 24 > data_end)
			return DROP;
		for (int i = 0; i < V6_HEADER_BYTES / 8; i++)
			*(uint64_t *)(data + 8 * i) = state.header[way][size][i];
		*(uint16_t *)(data + 54) = source;
		*(uint16_t *)(data + 56) = port;
		*(uint32_t *)(data + 58) = (uint32_t)state.header[way][size][7] >> 16;
		probe = data + V6_HEADER_BYTES;
	} else {
		if (data + HEADER_BYTES + 24 > data_end)
			return DROP;
		for (int i = 0; i < HEADER_BYTES / 8; i++)
			*(uint64_t *)(data + 8 * i) = state.header[way][size][i];
		if (state.sources > 1)
			move_on(data + 26, data + 18,
				(uint16_t)(number / (state.flows ? state.flows : 1) % state.sources));
		if (state.outputs > 1)
			move_on(data + 30, data + 18, (uint16_t)(number % state.outputs));
		*(uint16_t *)(data + 40) = 0;
		*(uint16_t *)(data + 34) = source;
		*(uint16_t *)(data + 36) = port;
		probe = data + HEADER_BYTES;
	}
	if (state.payload_words && !state.is_v6) {
		char *at = data + HEADER_BYTES;

		for (uint32_t i = 0; i < PAYLOAD_WORDS && i < state.payload_words && at + 4 <= data_end; i++, at += 4)
			*(uint32_t *)at = state.payload[i];
	} else {
		*(uint32_t *)probe = PROBE_MAGIC;
		*(uint32_t *)(probe + 4) = state.run;
		*(uint64_t *)(probe + 8) = __builtin_bswap64(number);
		*(uint64_t *)(probe + 16) = __builtin_bswap64(now);
	}
	if (state.packets == state.warm_up) {
		state.begin_ns = state.start_ns = now;
		state.end_ns = now + state.length_ns;
		state.paced = 0;
	}
	state.packets++;
	state.paced++;
	if (state.is_queued)
		return (int)redirect_map(&cores, state.core, 0);
	return (int)redirect(way ? state.back_interface : state.interface, 0);
}
