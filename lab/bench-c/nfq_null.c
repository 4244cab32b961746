/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null verdict in C: takes every packet of a netfilter queue and lets it pass. The baseline for what a module may
 * cost through the nfqueue driver, so it does what the driver does, and nothing else: the same libraries' message
 * formats, whole packets copied, no large segments, many messages per receive call, one verdict for each batch.
 *
 *   nfq_null QUEUE [CORE]
 *   iptables -t mangle -A PREROUTING -p udp --dport 9000 -j NFQUEUE --queue-num QUEUE --queue-bypass
 *
 * Ends with SIGINT or SIGTERM and then prints one line of JSON. `-1` as CORE, or none, leaves the process unpinned.
 */
#define _GNU_SOURCE
#include "common.h"

#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/sock_diag.h>

#define BATCH 64
#define SLOT_BYTES (65536 + 1024 + 320)
/* The driver's bounds: the socket's buffer is what bounds, and counts what passes unseen. */
#define QUEUE_PACKETS (1 << 24)
#define RECEIVE_BUFFER_BYTES (8192 * 2048)

static char slots[BATCH][SLOT_BYTES];

static void configure(struct mnl_socket *socket, uint16_t queue)
{
	char buffer[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *header = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, queue);

	nfq_nlmsg_cfg_put_cmd(header, AF_UNSPEC, NFQNL_CFG_CMD_BIND);
	nfq_nlmsg_cfg_put_params(header, NFQNL_COPY_PACKET, 0xffff);
	nfq_nlmsg_cfg_put_qmaxlen(header, QUEUE_PACKETS);
	mnl_attr_put_u32(header, NFQA_CFG_MASK, htonl(NFQA_CFG_F_FAIL_OPEN | NFQA_CFG_F_GSO));
	mnl_attr_put_u32(header, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_FAIL_OPEN));
	header->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(socket, header, header->nlmsg_len) < 0)
		die("binding the queue");
	ssize_t length = mnl_socket_recvfrom(socket, buffer, sizeof(buffer));

	if (length < 0 || mnl_cb_run(buffer, length, 0, mnl_socket_get_portid(socket), NULL, NULL) < 0)
		die("binding the queue");
}

/* Returns the packet's number in network byte order, or 0 for what is no packet. */
static uint32_t packet_id(const char *slot, unsigned int length)
{
	const struct nlmsghdr *header = (const struct nlmsghdr *)slot;
	struct nlattr *attributes[NFQA_MAX + 1] = { 0 };

	if (!mnl_nlmsg_ok(header, length) || header->nlmsg_type != ((NFNL_SUBSYS_QUEUE << 8) | NFQNL_MSG_PACKET))
		return 0;
	if (nfq_nlmsg_parse(header, attributes) < 0 || !attributes[NFQA_PACKET_HDR])
		return 0;
	return ((struct nfqnl_msg_packet_hdr *)mnl_attr_get_payload(attributes[NFQA_PACKET_HDR]))->packet_id;
}

/* Returns how many packets passed unseen since the socket had no room for them; with FAIL_OPEN nothing else counts them. */
static uint32_t bypassed(int fd)
{
	uint32_t values[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(values);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values, &length) < 0)
		die("SO_MEMINFO");
	return values[SK_MEMINFO_DROPS];
}

static void pass_up_to(struct mnl_socket *socket, uint16_t queue, uint32_t id)
{
	char buffer[MNL_SOCKET_BUFFER_SIZE];
	struct nlmsghdr *header = nfq_nlmsg_put(buffer, NFQNL_MSG_VERDICT_BATCH, queue);

	nfq_nlmsg_verdict_put(header, (int)ntohl(id), NF_ACCEPT);
	if (mnl_socket_sendto(socket, header, header->nlmsg_len) < 0)
		die("sending a verdict");
}

int main(int argc, char **argv)
{
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec vectors[BATCH];
	uint64_t packets = 0, batches = 0;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: nfq_null QUEUE [CORE]\n");
		return 2;
	}
	uint16_t queue = (uint16_t)number(argv[1]);

	pin(argc > 2 ? atoi(argv[2]) : -1);
	stop_on_signals();
	struct mnl_socket *socket = mnl_socket_open(NETLINK_NETFILTER);

	if (!socket || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0)
		die("opening a netfilter socket");
	int fd = mnl_socket_get_fd(socket);
	int receive_buffer = RECEIVE_BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_buffer, sizeof(receive_buffer)) < 0)
		die("SO_RCVBUFFORCE");
	int on = 1;

	if (setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on)) < 0)
		die("NETLINK_NO_ENOBUFS");
	configure(socket, queue);
	for (int i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){ .iov_base = slots[i], .iov_len = SLOT_BYTES };
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (!stopped) {
		int count = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
		uint32_t last = 0;

		if (count < 0) {
			if (errno != EINTR)
				die("recvmmsg");
			continue;
		}
		for (int i = 0; i < count; i++) {
			uint32_t id = packet_id(slots[i], messages[i].msg_len);

			if (id) {
				last = id;
				packets++;
			}
		}
		if (last) {
			pass_up_to(socket, queue, last);
			batches++;
		}
	}
	printf("{\"packets\":%llu,\"batches\":%llu,\"bypassed\":%u}\n", (unsigned long long)packets,
	       (unsigned long long)batches, bypassed(fd));
	mnl_socket_close(socket);
	return 0;
}
