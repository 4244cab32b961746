// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Finds the packets that a filter of the node wants and signaling messages, and leads them to its AF_XDP sockets. All others pass.

#include "classify.h"

SECTION("xdp") int classify(struct xdp_md *context)
{
	void *data = (void *)(long)context->data, *data_end = (void *)(long)context->data_end;
	struct frame frame = { 0 };
	struct interface *interface;
	int verdict = XDP_PASS, is_message;

	if (!parse_frame(&frame, context))
		goto out;
	count_destination(&frame, data, context);
	is_message = is_signaling(&frame.flow);
	if (!is_message && !is_wanted(&frame.flow))
		goto out;
	interface = find_interface(&frame, data);
	if (interface && is_message)
		verdict = intercept(&frame, interface, context);
	else if (interface)
		verdict = take(&frame, interface, (u32)(data_end - data), context->rx_queue_index);
out:
	return verdict;
}
