/* SPDX-License-Identifier: Apache-2.0 */
/* What the counting sink in the kernel (sink.bpf.c) and the program that reads it (trial.c) share. */
#ifndef NETSERV_BENCH_SINK_H
#define NETSERV_BENCH_SINK_H

#include <stdint.h>

#define SEEN_WORDS (1u << 20)
/* Numbers of a run at most. */
#define NUMBERS_MAX (64ull * SEEN_WORDS)
#define TURNS_MAX 16 /* a power of two */
#define STEPS (1u << 14)
#define FINE_NS 100
#define COARSE_NS 10000

enum sink_mode {
	SINK_NUMBERED, /* counts packets that carry a struct probe of the run */
	SINK_FROM_PORT, /* counts UDP packets from `port`, without numbers */
};

struct sink_state {
	uint32_t run;  /* in network byte order, as in the probe */
	uint32_t mode; /* enum sink_mode */
	uint32_t port; /* in network byte order */
	uint32_t timed; /* whether latencies are taken */
	uint32_t payload_at; /* where in a frame the probe is */
	uint32_t turns; /* ways that packets take in turn, each by its number; order counts for each way */
	uint64_t timed_from; /* no latencies of lower numbers */
	uint64_t received;
	uint64_t duplicates;
	uint64_t reordered;
	uint64_t foreign;
	uint64_t highest[TURNS_MAX]; /* the highest number seen of each way, plus one */
	uint64_t fine[STEPS]; /* latencies in steps of FINE_NS; the last one is for all that are longer */
	uint64_t coarse[STEPS]; /* the same in steps of COARSE_NS */
	uint64_t seen[SEEN_WORDS]; /* one bit for each number */
};

#endif
