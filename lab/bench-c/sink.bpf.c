/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counting sink: a filter of a packet socket that looks at every packet where it arrives, counts it, and lets the
 * socket have none. No program has to run, and nothing is copied, so the sink takes next to nothing from the machine.
 */
#include "sink.h"

#define SECTION(name) __attribute__((section(name), used))
#define ETHERNET_BYTES 14
#define PROBE_MAGIC 0x5250534eu /* as in common.h, in network byte order */

static uint64_t (*const ktime_get_ns)(void) = (void *)5;
static long (*const skb_load_bytes)(const void *packet, uint32_t at, void *to, uint32_t bytes) = (void *)26;

struct head {
	uint8_t ip[20];
	uint16_t source;
	uint16_t destination;
};

struct probe {
	uint32_t magic;
	uint32_t run;
	uint64_t sequence;
	uint64_t sent_ns;
};

struct sink_state state;

static __attribute__((always_inline)) void time_it(uint64_t sent_ns)
{
	uint64_t now = ktime_get_ns(), sent = __builtin_bswap64(sent_ns);
	uint64_t took = now > sent ? now - sent : 0, fine = took / FINE_NS, coarse = took / COARSE_NS;

	if (fine >= STEPS)
		fine = STEPS - 1;
	if (coarse >= STEPS)
		coarse = STEPS - 1;
	__sync_fetch_and_add(&state.fine[fine & (STEPS - 1)], 1);
	__sync_fetch_and_add(&state.coarse[coarse & (STEPS - 1)], 1);
}

static __attribute__((always_inline)) int is_from_port(void *packet)
{
	struct head head = { 0 };

	return skb_load_bytes(packet, ETHERNET_BYTES, &head, sizeof(head)) == 0 && head.ip[9] == 17 &&
	       head.source == state.port;
}

SECTION("program") int count(void *packet)
{
	struct probe probe = { 0 };

	if (state.mode == SINK_FROM_PORT) {
		__sync_fetch_and_add(is_from_port(packet) ? &state.received : &state.foreign, 1);
		return 0;
	}
	if (skb_load_bytes(packet, state.payload_at, &probe, sizeof(probe)) < 0)
		goto foreign;
	uint64_t sequence = __builtin_bswap64(probe.sequence);

	if (probe.magic != PROBE_MAGIC || probe.run != state.run || sequence >= NUMBERS_MAX)
		goto foreign;
	uint64_t bit = 1ull << (sequence & 63);

	if (__sync_fetch_and_or(&state.seen[(sequence >> 6) & (SEEN_WORDS - 1)], bit) & bit) {
		__sync_fetch_and_add(&state.duplicates, 1);
		return 0;
	}
	__sync_fetch_and_add(&state.received, 1);
	uint64_t *highest = &state.highest[sequence % (state.turns ? state.turns : 1) & (TURNS_MAX - 1)];

	if (sequence >= *highest)
		*highest = sequence + 1;
	else
		__sync_fetch_and_add(&state.reordered, 1);
	if (state.timed && sequence >= state.timed_from)
		time_it(probe.sent_ns);
	return 0;
foreign:
	__sync_fetch_and_add(&state.foreign, 1);
	return 0;
}
