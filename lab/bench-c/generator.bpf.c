/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator: an XDP program that the kernel runs on frames of its own making (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18)
 * and that sends them out of an interface. It makes about six million packets per second on a core that needs one
 * microsecond to forward one, so that next to nothing of what is measured is the generator's. While nothing is due it
 * refuses the frame, and is asked again.
 */
#include "generator.h"

#define SECTION(name) __attribute__((section(name), used))
#define DROP 1
#define PROBE_MAGIC 0x5250534eu /* as in common.h, in network byte order */

struct xdp_md {
	uint32_t data, data_end, data_meta, ingress_interface, queue, egress_interface;
};

static uint64_t (*const ktime_get_ns)(void) = (void *)5;
static long (*const redirect)(uint32_t interface, uint64_t flags) = (void *)23;

struct generator_state state;

/* Whether a packet is due. */
static __attribute__((always_inline)) int is_due(uint64_t now)
{
	if (!state.start_ns)
		state.start_ns = now;
	if (state.end_ns && now >= state.end_ns)
		return 0;
	uint64_t due = state.start_ns + state.paced * state.step_ps / 1000;

	if (now < due)
		return 0;
	if (now - due > state.late_ns) {
		state.start_ns = now;
		state.paced = 0;
	}
	return 1;
}

SECTION("program") int generate(struct xdp_md *context)
{
	/* Not by packed structures, which clang writes byte by byte. */
	char *data = (char *)(long)context->data, *data_end = (char *)(long)context->data_end;

	if (data + HEADER_BYTES + 24 > data_end)
		return DROP;
	uint64_t now = ktime_get_ns();

	if (!is_due(now)) {
		state.waits++;
		return DROP;
	}
	/* The frame may have been sent before, and the kernel has written into it. */
	for (int i = 0; i < HEADER_BYTES / 8; i++)
		*(uint64_t *)(data + 8 * i) = state.header[i];
	*(uint16_t *)(data + 40) = 0;
	uint64_t number = state.packets - state.warm_up;

	if (state.ports > 1) {
		uint32_t turn = (uint32_t)(state.packets / state.burst % state.ports);

		*(uint16_t *)(data + 36) = __builtin_bswap16((uint16_t)(state.port + turn));
	}
	if (state.payload_words) {
		char *at = data + HEADER_BYTES;

		for (uint32_t i = 0; i < PAYLOAD_WORDS && i < state.payload_words && at + 4 <= data_end; i++, at += 4)
			*(uint32_t *)at = state.payload[i];
	} else {
		*(uint32_t *)(data + HEADER_BYTES) = PROBE_MAGIC;
		*(uint32_t *)(data + HEADER_BYTES + 4) = state.packets < state.warm_up ? ~state.run : state.run;
		*(uint64_t *)(data + HEADER_BYTES + 8) = __builtin_bswap64(number);
		*(uint64_t *)(data + HEADER_BYTES + 16) = __builtin_bswap64(now);
	}
	if (state.packets == state.warm_up) {
		state.begin_ns = now;
		state.end_ns = now + state.length_ns;
	}
	state.packets++;
	state.paced++;
	return (int)redirect(state.interface, 0);
}
