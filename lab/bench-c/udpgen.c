/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends numbered UDP datagrams at a steady rate, many per system call.
 *
 *   udpgen ADDRESS PORT RATE SECONDS [PAYLOAD_BYTES [CORE [FLOWS [BATCH]]]]
 *
 * RATE is in datagrams per second; 0 sends as fast as possible. PAYLOAD_BYTES is 24 at least, which is the default: an
 * IPv4 packet of 52 bytes, a frame of 66. FLOWS spreads the datagrams over as many source ports. Prints one line of
 * JSON at the end: what was sent, what the system refused, the rate that came out.
 */
#define _GNU_SOURCE
#include "common.h"

#define BATCH_MAX 64
#define FLOWS_MAX 64
#define PAYLOAD_MAX 1472

int main(int argc, char **argv)
{
	struct sockaddr_storage address;
	struct mmsghdr messages[BATCH_MAX] = { 0 };
	struct iovec vectors[BATCH_MAX];
	static char payloads[BATCH_MAX][PAYLOAD_MAX];
	int sockets[FLOWS_MAX];
	uint64_t sequence = 0, refused = 0;

	if (argc < 5 || argc > 9) {
		fprintf(stderr, "usage: udpgen ADDRESS PORT RATE SECONDS [PAYLOAD_BYTES [CORE [FLOWS [BATCH]]]]\n");
		return 2;
	}
	socklen_t length = resolve(argv[1], argv[2], &address);
	uint64_t rate = number(argv[3]);
	double seconds = atof(argv[4]);
	size_t bytes = argc > 5 ? number(argv[5]) : sizeof(struct probe);
	uint64_t flows = argc > 7 ? number(argv[7]) : 1;
	uint64_t batch = argc > 8 ? number(argv[8]) : 32;

	if (bytes < sizeof(struct probe) || bytes > PAYLOAD_MAX || !flows || flows > FLOWS_MAX || !batch ||
	    batch > BATCH_MAX) {
		fprintf(stderr, "payload %zu-%d bytes, 1-%d flows, batches of 1-%d\n", sizeof(struct probe), PAYLOAD_MAX,
			FLOWS_MAX, BATCH_MAX);
		return 2;
	}
	pin(argc > 6 ? atoi(argv[6]) : -1);
	stop_on_signals();
	for (uint64_t i = 0; i < flows; i++) {
		int buffer = 4 * 1024 * 1024;

		sockets[i] = socket(address.ss_family, SOCK_DGRAM, 0);
		if (sockets[i] < 0 || connect(sockets[i], (struct sockaddr *)&address, length) < 0)
			die("connecting a socket");
		setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	}
	for (uint64_t i = 0; i < batch; i++) {
		vectors[i] = (struct iovec){ .iov_base = payloads[i], .iov_len = bytes };
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	uint32_t run = (uint32_t)getpid();
	uint64_t start = now_ns(), end = start + (uint64_t)(seconds * NS_PER_S), now = start, batches = 0;

	while (!stopped && now < end) {
		/* The n-th datagram is due at start + n/rate; a late generator catches up. */
		uint64_t due = rate ? start + (uint64_t)((double)sequence * NS_PER_S / (double)rate) : now;

		if (now < due) {
			if (due - now > 100000) {
				struct timespec pause = { .tv_nsec = (long)(due - now - 80000) % 1000000000 };

				nanosleep(&pause, NULL);
			}
			now = now_ns();
			continue;
		}
		for (uint64_t i = 0; i < batch; i++) {
			struct probe probe = {
				.magic = htonl(PROBE_MAGIC),
				.run = htonl(run),
				.sequence = htobe64(sequence + i),
				.sent_ns = htobe64(now),
			};

			memcpy(payloads[i], &probe, sizeof(probe));
		}
		int sent = sendmmsg(sockets[batches++ % flows], messages, (unsigned int)batch, 0);

		if (sent < 0) {
			/* An ICMP error or a full queue of the device: this datagram is lost, the next goes on. */
			if (errno != ECONNREFUSED && errno != ENOBUFS && errno != EINTR)
				die("sendmmsg");
			refused++;
			sent = 1;
		}
		sequence += (uint64_t)sent;
		now = now_ns();
	}
	double elapsed = (double)(now - start) / NS_PER_S;

	printf("{\"sent\":%llu,\"refused\":%llu,\"seconds\":%.3f,\"rate\":%.0f,\"run\":%u}\n",
	       (unsigned long long)(sequence - refused), (unsigned long long)refused, elapsed,
	       (double)(sequence - refused) / elapsed, run);
	return 0;
}
