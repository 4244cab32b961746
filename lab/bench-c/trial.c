/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trial of RFC 2544: sends numbered UDP packets through a router at a steady rate, and says what arrived behind it.
 *
 *   trial KEY=VALUE…
 *
 *   sender, router, sink   NAMESPACE:INTERFACE; the first two are the ends of one link. Namespaces are files.
 *   source, destination    IPv4 addresses of the packets
 *   objects                the directory of generator.bpf.o and sink.bpf.o
 *   port, ports, burst     destination port, the number of ports from there that take turns (1), packets in a turn (1)
 *   rate, seconds          packets per second (0: as many as possible), length of the trial
 *   bytes                  of the IP packets (64)
 *   batch                  frames that the generator makes at a time (64)
 *   core                   of the generator (-1: any)
 *   timed                  1: latencies, and one frame at a time
 *   payload                a file: what the packets carry in the place of numbers. Then packets from `port` are counted,
 *                          whatever else they are, at the interface `sink`.
 *
 * Give the router a neighbour entry with a MAC address that is nobody's for `destination`, so that the sink's kernel drops
 * what is counted. Both ends of the first link need GRO (`ethtool -K … gro on`), with which a veth takes frames as a card
 * does: several at a time, outside of the sender's system call, but on its core. A late generator catches up by 1 ms at
 * most, so that a pause of it does not become a burst.
 *
 * Prints one line of JSON. `cpu_ns` is what each packet took of all cores of the machine: what they were not idle, less
 * what the generator spent while it waited, by its cost per wait that is measured before.
 */
#define _GNU_SOURCE
#include "bpf_load.h"
#include "common.h"
#include "generator.h"
#include "sink.h"

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/time.h>

#define BATCH_MAX 256
#define IP_BYTES_MAX 1500
#define WARM_UP_NS (NS_PER_S / 20)
#define WARM_UP_PACKETS 30000
#define LATE_NS (NS_PER_S / 1000)
#define SETTLE_NS (NS_PER_S / 20)
#define WAITS_MEASURED 50000

struct options {
	char *sender, *router, *sink;
	const char *source, *destination, *objects, *payload;
	uint64_t port, ports, burst, rate, bytes, batch, timed;
	double seconds;
	int core;
};

struct frame {
	struct ether_header ethernet;
	struct iphdr ip;
	struct udphdr udp;
	char payload[IP_BYTES_MAX];
} __attribute__((packed));

struct generator {
	int program;
	struct generator_state *state;
	struct frame frame;
	uint32_t frame_bytes;
	uint32_t batch;
};

static struct options parse(int argc, char **argv)
{
	struct options options = { .ports = 1, .burst = 1, .bytes = 64, .batch = 64, .core = -1, .seconds = 1 };

	for (int i = 1; i < argc; i++) {
		char *key = argv[i], *value = strchr(key, '=');

		if (!value) {
			fprintf(stderr, "`%s` is not KEY=VALUE\n", key);
			exit(2);
		}
		*value++ = 0;
#define TEXT(name) if (!strcmp(key, #name)) { options.name = value; continue; }
#define NUMBER(name) if (!strcmp(key, #name)) { options.name = number(value); continue; }
		TEXT(sender) TEXT(router) TEXT(sink) TEXT(source) TEXT(destination) TEXT(objects) TEXT(payload)
		NUMBER(port) NUMBER(ports) NUMBER(burst) NUMBER(rate) NUMBER(bytes) NUMBER(batch) NUMBER(timed)
#undef TEXT
#undef NUMBER
		if (!strcmp(key, "seconds"))
			options.seconds = atof(value);
		else if (!strcmp(key, "core"))
			options.core = atoi(value);
		else {
			fprintf(stderr, "no option `%s`\n", key);
			exit(2);
		}
	}
	if (!options.sender || !options.router || !options.sink || !options.source || !options.destination ||
	    !options.objects || options.bytes < 52 || options.bytes > IP_BYTES_MAX || !options.batch ||
	    options.batch > BATCH_MAX || !options.ports || !options.burst || options.port + options.ports > 65536) {
		fprintf(stderr, "usage: trial sender= router= sink= source= destination= objects= port= rate= seconds= "
				"[bytes=52..%d] [batch=1..%d] [ports=] [burst=] [core=] [timed=1] [payload=]\n",
			IP_BYTES_MAX, BATCH_MAX);
		exit(2);
	}
	if (options.timed)
		options.batch = 1;
	return options;
}

/* Enters the namespace of NAMESPACE:INTERFACE and returns the interface's name. */
static const char *enter(const char *place)
{
	char path[256];
	const char *colon = strrchr(place, ':');

	if (!colon || (size_t)(colon - place) >= sizeof(path)) {
		fprintf(stderr, "`%s` is not NAMESPACE:INTERFACE\n", place);
		exit(2);
	}
	memcpy(path, place, (size_t)(colon - place));
	path[colon - place] = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		die(path);
	close(fd);
	return colon + 1;
}

static void hardware_address(const char *interface, uint8_t *address)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request) < 0)
		die(interface);
	memcpy(address, request.ifr_hwaddr.sa_data, ETH_ALEN);
	close(fd);
}

static struct sink_state *open_sink(const struct options *options)
{
	void *state;
	int program = bpf_load(BPF_PROG_TYPE_SOCKET_FILTER, options->objects, "sink.bpf.o", sizeof(struct sink_state),
			       &state);
	const char *interface = enter(options->sink);
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP), .sll_ifindex = (int)if_nametoindex(interface)
	};
	/* Of no protocol until its filter is there. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("opening the sink");
	return state;
}

static uint16_t header_checksum(const struct iphdr *ip)
{
	const uint16_t *words = (const uint16_t *)ip;
	uint32_t sum = 0;

	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

/* Makes a frame without a probe; returns its length. */
static uint32_t make_frame(struct frame *frame, const struct options *options)
{
	uint64_t bytes = options->bytes;

	if (options->payload) {
		FILE *file = fopen(options->payload, "rb");

		if (!file)
			die(options->payload);
		bytes = 28 + fread(frame->payload, 1, IP_BYTES_MAX - 28, file);
		fclose(file);
	}
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP, .tot_len = htons((uint16_t)bytes) };

	if (inet_pton(AF_INET, options->source, &ip.saddr) != 1 ||
	    inet_pton(AF_INET, options->destination, &ip.daddr) != 1) {
		fprintf(stderr, "source and destination are IPv4 addresses\n");
		exit(2);
	}
	ip.check = header_checksum(&ip);
	frame->ethernet.ether_type = htons(ETHERTYPE_IP);
	frame->ip = ip;
	frame->udp.source = htons(40000);
	frame->udp.dest = htons((uint16_t)options->port);
	frame->udp.len = htons((uint16_t)(bytes - sizeof(struct iphdr)));
	return (uint32_t)(sizeof(struct ether_header) + bytes);
}

static struct generator open_generator(const struct options *options, uint32_t run)
{
	struct generator generator = { .batch = (uint32_t)options->batch };
	void *memory;

	hardware_address(enter(options->router), generator.frame.ethernet.ether_dhost);
	const char *interface = enter(options->sender);

	hardware_address(interface, generator.frame.ethernet.ether_shost);
	generator.frame_bytes = make_frame(&generator.frame, options);
	generator.program = bpf_load(BPF_PROG_TYPE_XDP, options->objects, "generator.bpf.o",
				     sizeof(struct generator_state), &memory);
	struct generator_state *state = memory;

	state->step_ps = options->rate ? 1000 * NS_PER_S / options->rate : 0;
	state->warm_up = options->rate ? options->rate * WARM_UP_NS / NS_PER_S : WARM_UP_PACKETS;
	state->length_ns = (uint64_t)(options->seconds * NS_PER_S);
	state->late_ns = LATE_NS;
	state->interface = if_nametoindex(interface);
	state->run = run;
	state->port = (uint32_t)options->port;
	state->ports = (uint32_t)options->ports;
	state->burst = (uint32_t)options->burst;
	memcpy(state->header, &generator.frame, HEADER_BYTES);
	memcpy(state->payload, generator.frame.payload, sizeof(state->payload));
	if (options->payload)
		state->payload_words = (generator.frame_bytes - HEADER_BYTES) / 4;
	generator.state = state;
	return generator;
}

/* Runs the generator until it was asked so often, or a signal comes. */
static void run(const struct generator *generator, uint32_t times)
{
	union bpf_attr attr = { .test = {
		.prog_fd = (uint32_t)generator->program,
		.data_in = (uint64_t)(uintptr_t)&generator->frame,
		.data_size_in = generator->frame_bytes,
		.repeat = times,
		.flags = BPF_F_TEST_XDP_LIVE_FRAMES,
		.batch_size = generator->batch,
	} };

	if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)) < 0 && errno != EINTR)
		die("running the generator (Linux 5.18 or newer)");
}

/* Returns what it costs to ask the generator when nothing is due, in ns. */
static double measure_wait(const struct generator *generator)
{
	struct timespec before, after;

	generator->state->end_ns = 1;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	run(generator, WAITS_MEASURED);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	generator->state->end_ns = generator->state->waits = generator->state->start_ns = 0;
	return ((double)(after.tv_sec - before.tv_sec) * NS_PER_S + (double)(after.tv_nsec - before.tv_nsec)) /
	       WAITS_MEASURED;
}

static void send_all(const struct generator *generator)
{
	uint64_t ns = generator->state->length_ns + WARM_UP_NS + NS_PER_S / 50;
	struct itimerval timer = { .it_value = { (time_t)(ns / NS_PER_S), (suseconds_t)(ns % NS_PER_S / 1000) } };

	setitimer(ITIMER_REAL, &timer, NULL);
	while (!stopped)
		run(generator, UINT32_MAX);
}

/* Returns for how many seconds the cores were idle so far, all together. */
static double idle_seconds(void)
{
	double up, idle;
	FILE *file = fopen("/proc/uptime", "r");

	if (!file || fscanf(file, "%lf %lf", &up, &idle) != 2)
		die("/proc/uptime");
	fclose(file);
	return idle;
}

static void settle(const struct sink_state *state, uint64_t wanted)
{
	uint64_t last = state->received, since = now_ns();

	while (state->received < wanted && now_ns() - since < SETTLE_NS) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		if (state->received != last) {
			last = state->received;
			since = now_ns();
		}
	}
}

/* Returns the latency in us that a share of the packets did not exceed. */
static double quantile(const struct sink_state *state, double share)
{
	uint64_t all = 0, below = 0;

	for (uint32_t i = 0; i < STEPS; i++)
		all += state->coarse[i];
	uint64_t wanted = (uint64_t)(share * (double)all);

	for (uint32_t i = 0; i + 1 < STEPS; i++) {
		below += state->fine[i];
		if (below > wanted)
			return (double)i * FINE_NS / 1000;
	}
	below = 0;
	for (uint32_t i = 0; i < STEPS; i++) {
		below += state->coarse[i];
		if (below > wanted)
			return (double)i * COARSE_NS / 1000;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options options = parse(argc, argv);
	uint32_t run_id = htonl((uint32_t)getpid());

	pin(options.core);
	setpriority(PRIO_PROCESS, 0, -20);
	stop_on_signals();
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	struct sink_state *sink = open_sink(&options);
	struct generator generator = open_generator(&options, run_id);
	double wait_ns = measure_wait(&generator);
	const struct generator_state *state = generator.state;

	sink->mode = options.payload ? SINK_FROM_PORT : SINK_NUMBERED;
	sink->port = htons((uint16_t)options.port);
	sink->timed = options.timed != 0;
	sink->run = run_id;
	uint64_t began = now_ns();
	double idle = idle_seconds();

	send_all(&generator);
	double passed = (double)(now_ns() - began) / NS_PER_S;
	double busy = (double)sysconf(_SC_NPROCESSORS_ONLN) * passed - (idle_seconds() - idle) -
		      (double)state->waits * wait_ns / NS_PER_S;
	/* Packets with a payload of their own count from the first, for they have no numbers. */
	uint64_t uncounted = options.payload ? 0 : state->warm_up;
	uint64_t sent = state->packets > uncounted ? state->packets - uncounted : 0;

	settle(sink, sent);
	uint64_t end = state->end_ns, seconds_ns = end > state->begin_ns ? end - state->begin_ns : 0;

	printf("{\"sent\":%llu,\"received\":%llu,\"duplicates\":%llu,\"reordered\":%llu,\"foreign\":%llu,"
	       "\"rate\":%.0f,\"cpu_ns\":%.1f,\"wait_ns\":%.1f,"
	       "\"latency_us\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f}}\n",
	       (unsigned long long)sent, (unsigned long long)sink->received, (unsigned long long)sink->duplicates,
	       (unsigned long long)sink->reordered, (unsigned long long)sink->foreign,
	       seconds_ns ? (double)(state->packets - state->warm_up) * NS_PER_S / (double)seconds_ns : 0.0,
	       state->packets ? busy * NS_PER_S / (double)state->packets : 0.0, wait_ns, quantile(sink, 0.5),
	       quantile(sink, 0.9), quantile(sink, 0.99), quantile(sink, 0.999));
	return 0;
}
