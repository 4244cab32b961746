// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Finds the packets that a filter of the node wants and signaling messages, and leads them to its AF_XDP sockets. All others pass.

#include "classify.h"

SECTION("xdp") int classify(struct xdp_md *context)
{
	struct frame frame = { 0 };
	struct interface *interface;
	int verdict = XDP_PASS, wanted;

	if (!parse_frame(&frame, context))
		goto out;
	wanted = is_wanted(&frame.flow, WANTED);
	count_destination(&frame, context);
	if (!wanted && !is_signaling(&frame.flow))
		goto out;
	interface = find_interface(&frame, context);
	if (interface && is_signaling(&frame.flow))
		verdict = intercept(&frame, interface, context);
	else if (interface)
		verdict = take(&frame, interface, frame_bytes(context), context->rx_queue_index);
out:
	return verdict;
}
