/* SPDX-License-Identifier: Apache-2.0 */
/* What the generator in the kernel (generator.bpf.c) and the program that steers it (trial.c) share. */
#ifndef NETSERV_BENCH_GENERATOR_H
#define NETSERV_BENCH_GENERATOR_H

#include <stdint.h>

#define HEADER_BYTES 42 /* Ethernet, IPv4, UDP */
#define PAYLOAD_WORDS 368 /* of 4 bytes */

struct generator_state {
	/* Set before it runs. */
	uint64_t step_ps; /* between two packets; 0: as fast as possible */
	uint64_t warm_up; /* so many packets do not count */
	uint64_t length_ns; /* of what counts */
	uint64_t late_ns; /* what it catches up at most */
	uint32_t interface;
	uint32_t run; /* in network byte order */
	uint32_t port, ports, burst;
	uint32_t payload_words; /* 0: a probe is the payload */
	uint64_t header[HEADER_BYTES / 8 + 1];
	uint32_t payload[PAYLOAD_WORDS];
	/* What it did. */
	uint64_t paced; /* packets since start_ns */
	uint64_t start_ns;
	uint64_t begin_ns; /* when the first packet that counts was sent */
	uint64_t end_ns; /* nothing is sent from here on */
	uint64_t packets; /* all that were sent */
	uint64_t waits; /* times that nothing was due, or all was sent */
};

#endif
