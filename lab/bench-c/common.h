/* SPDX-License-Identifier: Apache-2.0 */
/* What the bench programs share: the test datagram, the clock, the options. */
#ifndef NETSERV_BENCH_COMMON_H
#define NETSERV_BENCH_COMMON_H

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The start of every datagram of udpgen, in network byte order. */
struct probe {
	uint32_t magic;
	uint32_t run;      /* tells the datagrams of one run from those of another */
	uint64_t sequence; /* from 0 on */
	uint64_t sent_ns;  /* CLOCK_MONOTONIC, which all processes of a machine share */
};

#define PROBE_MAGIC 0x4e535052u /* NSPR */
#define NS_PER_S 1000000000ull

static volatile sig_atomic_t stopped;

static inline void on_signal(int signal_number)
{
	(void)signal_number;
	stopped = 1;
}

/* SIGINT and SIGTERM end a program in good order; they interrupt a blocking call. */
static inline void stop_on_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Keeps the process on one core; nothing happens for -1. */
static inline void pin(int core)
{
	cpu_set_t cores;

	if (core < 0)
		return;
	CPU_ZERO(&cores);
	CPU_SET(core, &cores);
	if (sched_setaffinity(0, sizeof(cores), &cores) < 0)
		die("sched_setaffinity");
}

static inline uint64_t number(const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end) {
		fprintf(stderr, "`%s` is not a number\n", text);
		exit(2);
	}
	return value;
}

/* Makes an address of a numeric host and port; returns its length. */
static inline socklen_t resolve(const char *host, const char *port, struct sockaddr_storage *address)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	struct addrinfo *found;
	socklen_t length;
	int error = getaddrinfo(host, port, &hints, &found);

	if (error) {
		fprintf(stderr, "%s port %s: %s\n", host, port, gai_strerror(error));
		exit(2);
	}
	length = found->ai_addrlen;
	memcpy(address, found->ai_addr, length);
	freeaddrinfo(found);
	return length;
}

#endif
