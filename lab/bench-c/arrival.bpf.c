/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a card's queue is in front of a router: the core that the queue belongs to runs this program on each frame of it
 * (a CPU map, Linux 5.9), and so all that the router does for the frame is on that core.
 */
#include "generator.h"

#define SECTION(name) __attribute__((section(name), used))

struct xdp_md {
	uint32_t data, data_end, data_meta, ingress_interface, queue, egress_interface;
};

static long (*const redirect)(uint32_t interface, uint64_t flags) = (void *)23;

struct arrival_state state;

SECTION("program") int take(struct xdp_md *context)
{
	(void)context;
	state.taken++;
	return (int)redirect(state.interface, 0);
}
