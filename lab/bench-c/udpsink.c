/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the datagrams of udpgen: how many came, which are missing, late or there twice, and how long they took.
 *
 *   udpsink ADDRESS PORT SECONDS [CORE]
 *
 * Ends after SECONDS (0: never), with SIGINT or SIGTERM, or one second after the last datagram when SECONDS is
 * negative; prints one line of JSON then. `lost` counts up to the highest number seen. Datagrams of a second generator count as
 * `foreign`. Latencies are those of every datagram, in steps of 1 us up to 65 ms; they mean something only where the
 * generator does not saturate the path.
 */
#define _GNU_SOURCE
#include "common.h"

#define BATCH 64
#define NUMBERS_MAX (1ull << 30)
#define STEPS 65536

static uint8_t *seen; /* one bit for each number */
static uint64_t steps[STEPS];
static uint64_t received, duplicates, reordered, foreign, highest, latencies;
static uint32_t run;

static void count(const char *payload, unsigned int bytes, uint64_t now)
{
	struct probe probe;

	if (bytes < sizeof(probe)) {
		foreign++;
		return;
	}
	memcpy(&probe, payload, sizeof(probe));
	uint64_t sequence = be64toh(probe.sequence), sent = be64toh(probe.sent_ns);

	if (!run)
		run = ntohl(probe.run);
	if (ntohl(probe.magic) != PROBE_MAGIC || ntohl(probe.run) != run || sequence >= NUMBERS_MAX) {
		foreign++;
		return;
	}
	uint8_t bit = (uint8_t)(1 << (sequence & 7));

	if (seen[sequence >> 3] & bit) {
		duplicates++;
		return;
	}
	seen[sequence >> 3] |= bit;
	received++;
	if (sequence + 1 > highest)
		highest = sequence + 1;
	else
		reordered++;
	if (now >= sent) {
		uint64_t us = (now - sent) / 1000;

		steps[us < STEPS ? us : STEPS - 1]++;
		latencies++;
	}
}

/* Returns the latency in us that a share of the datagrams did not exceed. */
static uint64_t quantile(double share)
{
	uint64_t below = 0, wanted = (uint64_t)(share * (double)latencies);

	for (uint64_t us = 0; us < STEPS; us++) {
		below += steps[us];
		if (below > wanted)
			return us;
	}
	return STEPS;
}

int main(int argc, char **argv)
{
	struct sockaddr_storage address;
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec vectors[BATCH];
	static char payloads[BATCH][2048];
	uint64_t first = 0, last = 0;

	if (argc < 4 || argc > 5) {
		fprintf(stderr, "usage: udpsink ADDRESS PORT SECONDS [CORE]\n");
		return 2;
	}
	socklen_t length = resolve(argv[1], argv[2], &address);
	double seconds = atof(argv[3]);

	pin(argc > 4 ? atoi(argv[4]) : -1);
	stop_on_signals();
	seen = calloc(NUMBERS_MAX / 8, 1);
	int fd = socket(address.ss_family, SOCK_DGRAM, 0), buffer = 64 * 1024 * 1024;
	struct timeval timeout = { .tv_usec = 100000 };

	if (!seen || fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0)
		die("binding a socket");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	for (int i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){ .iov_base = payloads[i], .iov_len = sizeof(payloads[i]) };
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	uint64_t start = now_ns();

	while (!stopped) {
		int batch = recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL);
		uint64_t now = now_ns();

		for (int i = 0; i < batch; i++)
			count(payloads[i], messages[i].msg_len, now);
		if (batch > 0) {
			first = first ? first : now;
			last = now;
		}
		if (seconds > 0 && (double)(now - start) > seconds * NS_PER_S)
			break;
		if (seconds < 0 && last && now - last > NS_PER_S)
			break;
	}
	double elapsed = (double)(last - first) / NS_PER_S;

	printf("{\"received\":%llu,\"lost\":%llu,\"duplicates\":%llu,\"reordered\":%llu,\"foreign\":%llu,"
	       "\"seconds\":%.3f,\"rate\":%.0f,\"latency_us\":{\"p50\":%llu,\"p90\":%llu,\"p99\":%llu,\"p999\":%llu}}\n",
	       (unsigned long long)received, (unsigned long long)(highest - received), (unsigned long long)duplicates,
	       (unsigned long long)reordered, (unsigned long long)foreign, elapsed,
	       elapsed > 0 ? (double)received / elapsed : 0.0, (unsigned long long)quantile(0.5),
	       (unsigned long long)quantile(0.9), (unsigned long long)quantile(0.99), (unsigned long long)quantile(0.999));
	return 0;
}
