/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends UDP datagrams through a network and takes them at its other end, never more than WINDOW of them on their way: as
 * fast as the path goes, without overloading it. One process on one core is both ends, in two network namespaces.
 *
 *   udploop FROM_NAMESPACE TO_NAMESPACE ADDRESS PORT SECONDS WINDOW [PAYLOAD_BYTES [CORE]]
 *
 * Namespaces are files, such as /run/netns/sender; ADDRESS is the receiving end's. Runs 0.2 s before it counts. What has
 * not come 0.2 s after the last one that did is lost. Prints one line of JSON at the end.
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>

#define BATCH 32
#define PAYLOAD_MAX 1472
#define WARM_UP_NS (NS_PER_S / 5)
#define LOST_NS (NS_PER_S / 5)

static void enter(const char *namespace)
{
	int fd = open(namespace, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		die(namespace);
	close(fd);
}

static int udp_socket(const struct sockaddr_storage *address)
{
	int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), buffer = 16 * 1024 * 1024;

	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
	return fd;
}

static void prepare(struct mmsghdr *messages, struct iovec *vectors, char (*payloads)[PAYLOAD_MAX], size_t bytes)
{
	for (int i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){ .iov_base = payloads[i], .iov_len = bytes };
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
}

int main(int argc, char **argv)
{
	static char outgoing[BATCH][PAYLOAD_MAX], incoming[BATCH][PAYLOAD_MAX];
	struct mmsghdr to_send[BATCH] = { 0 }, to_receive[BATCH] = { 0 };
	struct iovec send_vectors[BATCH], receive_vectors[BATCH];
	struct sockaddr_storage address;
	struct timeval timeout = { .tv_usec = 20000 };
	uint64_t on_the_way = 0, received = 0, lost = 0, counted_from = 0;

	if (argc < 7 || argc > 9) {
		fprintf(stderr, "usage: udploop FROM_NAMESPACE TO_NAMESPACE ADDRESS PORT SECONDS WINDOW [PAYLOAD_BYTES [CORE]]\n");
		return 2;
	}
	socklen_t length = resolve(argv[3], argv[4], &address);
	double seconds = atof(argv[5]);
	uint64_t window = number(argv[6]);
	size_t bytes = argc > 7 ? number(argv[7]) : sizeof(struct probe);

	if (bytes > PAYLOAD_MAX || window < BATCH) {
		fprintf(stderr, "payload at most %d bytes, window at least %d\n", PAYLOAD_MAX, BATCH);
		return 2;
	}
	pin(argc > 8 ? atoi(argv[8]) : -1);
	stop_on_signals();
	enter(argv[2]);
	int sink = udp_socket(&address);

	setsockopt(sink, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (bind(sink, (struct sockaddr *)&address, length) < 0)
		die("bind");
	enter(argv[1]);
	int source = udp_socket(&address);

	if (connect(source, (struct sockaddr *)&address, length) < 0)
		die("connect");
	prepare(to_send, send_vectors, outgoing, bytes);
	prepare(to_receive, receive_vectors, incoming, PAYLOAD_MAX);
	uint64_t begin = now_ns(), now = begin, last = begin, end = begin + WARM_UP_NS + (uint64_t)(seconds * NS_PER_S);

	while (!stopped && now < end) {
		while (on_the_way + BATCH <= window) {
			int sent = sendmmsg(source, to_send, BATCH, 0);

			if (sent < 0 && errno != ENOBUFS && errno != EINTR && errno != ECONNREFUSED)
				die("sendmmsg");
			on_the_way += sent > 0 ? (uint64_t)sent : 0;
		}
		int taken = recvmmsg(sink, to_receive, BATCH, MSG_WAITFORONE, NULL);

		now = now_ns();
		if (taken > 0) {
			/* What was given up as lost can still come. */
			on_the_way -= (uint64_t)taken < on_the_way ? (uint64_t)taken : on_the_way;
			received += (uint64_t)taken;
			last = now;
		} else if (now - last > LOST_NS) {
			lost += on_the_way;
			on_the_way = 0;
			last = now;
		}
		if (!counted_from && now - begin >= WARM_UP_NS) {
			counted_from = now;
			received = 0;
			lost = 0;
		}
	}
	double elapsed = (double)(now - (counted_from ? counted_from : begin)) / NS_PER_S;

	printf("{\"received\":%llu,\"lost\":%llu,\"seconds\":%.3f,\"rate\":%.0f}\n", (unsigned long long)received,
	       (unsigned long long)lost, elapsed, (double)received / elapsed);
	return 0;
}
