/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One trial of RFC 2544: sends numbered UDP packets through a router at a steady rate, and says what arrived behind it.
 *
 *   trial KEY=VALUE…
 *
 *   sender, router, sink   NAMESPACE:INTERFACE; the first two are the ends of one link. Namespaces are files. The sink may
 *                          have several: NAMESPACE:INTERFACE,INTERFACE…
 *   source, destination    IPv4 or IPv6 addresses of the packets
 *   objects                the directory of generator.bpf.o, arrival.bpf.o and sink.bpf.o
 *   port, ports, burst     destination port, the number of ports from there that take turns (1), packets in a turn (1)
 *   rate, seconds          packets per second (0: as many as possible), length of the trial
 *   bytes                  of the IP packets (64)
 *   batch                  frames that the generator makes at a time (64)
 *   core                   of the generator (-1: any)
 *   arrival                the core that takes frames from a queue and hands them to the router (-1: there is no queue; the
 *                          first link takes them on the generator's core); not with a socket
 *   queue                  places of that queue (4096, as of a card)
 *   timed                  1: latencies, and one frame at a time
 *   flows                  source ports that take turns (1); a multiple of 20,000 is so many ports of each of up to 50 IPv4
 *                          addresses from `source` on
 *   back                   INTERFACE:INTERFACE, the ends of another link, in the sender's namespace and in the router's: every
 *                          second packet is sent there, with source and destination exchanged, but for ports; not with a
 *                          socket, a payload, an arrival or outputs
 *   outputs                IPv4 addresses from `destination` on that take turns, one packet each (1, at most 16); not with a
 *                          socket or a payload
 *   mix                    1: packets of 64, 570 and 1500 bytes, 7, 4 and 1 of 12 (IMIX), in place of `bytes`
 *   socket                 1: packets come from a socket, as from a program, and not as frames; not with a payload
 *   payload                a file: what the packets carry in the place of numbers. Then packets from `port` are counted,
 *                          whatever else they are, at the interface `sink`.
 *
 * Give the router a neighbour entry with a MAC address that is nobody's for each destination, so that the sink's kernel
 * drops what is counted. The router's end of a link that frames are sent to needs GRO (`ethtool -K … gro on`), with which a
 * veth takes them as a card does: several at a time, outside of the sender's system call, but on its core. A late generator
 * catches up by 1 ms at most, so that a pause of it does not become a burst; what it did not send for that is the
 * difference of `asked` and `offered`. For 50 ms before it sends half of the rate. Those packets count as all others do,
 * but for rate and latencies.
 *
 * Prints one line of JSON. `reordered` are packets that arrived after a later one of the same direction and the same
 * output. `cpu_ns` is what each packet took of all cores of the machine: what they were not idle, less what the generator
 * spent while it waited, by its cost per wait that is measured before. `waited` is the share of the trial for which nothing
 * was due: close to nothing for a generator that cannot do more. `gaps` are the times of 1 ms and longer that the generator
 * did not come to run. `arrival_lost` is what found no place in the queue of the arrival's core. The rest is what the kernel
 * says that it dropped meanwhile: on the sender's interfaces, whose peers' rings were full; on all interfaces of the router
 * towards others; in the backlog of each core; for lack of a route; and what went into netfilter queues of the router, or
 * found them full.
 */
#define _GNU_SOURCE
#include "bpf_load.h"
#include "common.h"
#include "generator.h"
#include "sink.h"

#include <dirent.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/time.h>

#define BATCH_MAX 256
#define IP_BYTES_MAX 1500
#define SOURCE_PORTS_MAX 20000
#define SOURCES_MAX 50 /* addresses from `source` on */
#define FIRST_SOURCE 40000 /* as in generator.bpf.c */
#define FIRST_ID (SOURCES_MAX + OUTPUTS_MAX) /* enough to take from what addresses are moved on by */
#define WARM_UP_NS (NS_PER_S / 20)
#define WARM_UP_PACKETS 30000
#define LATE_NS (NS_PER_S / 1000)
#define GAP_NS (NS_PER_S / 1000)
#define SLACK_NS (NS_PER_S / 25)
#define CORES_MAX 64
#define SETTLE_NS (NS_PER_S / 20)
#define WAITS_MEASURED 50000

_Static_assert(WAYS_MAX <= TURNS_MAX && OUTPUTS_MAX <= TURNS_MAX, "order counts for each way");

struct options {
	char *sender, *router, *sink, *back, *back_router;
	const char *source, *destination, *objects, *payload;
	uint64_t port, ports, burst, rate, bytes, batch, timed, flows, mix, socket, queue, outputs;
	double seconds;
	int core, arrival;
};

union frame {
	struct {
		struct ether_header ethernet;
		struct iphdr ip;
		struct udphdr udp;
		char payload[IP_BYTES_MAX];
	} __attribute__((packed)) v4;
	struct {
		struct ether_header ethernet;
		struct ip6_hdr ip;
		struct udphdr udp;
	} __attribute__((packed)) v6;
};

struct generator {
	int program;
	struct generator_state *state;
	const struct arrival_state *arrival; /* NULL: there is no queue */
	union frame frame;
	uint32_t frame_bytes;
	uint32_t batch;
	int socket; /* that packets come from; -1: they come from the kernel */
};

/* Whether so many flows can be made. */
static int are_flows(const struct options *options)
{
	uint64_t flows = options->flows;

	if (flows <= SOURCE_PORTS_MAX)
		return flows > 0;
	return flows % SOURCE_PORTS_MAX == 0 && flows / SOURCE_PORTS_MAX <= SOURCES_MAX && !strchr(options->source, ':');
}

/* Whether packets can go so many ways. */
static int are_ways(const struct options *options)
{
	int is_plain = !options->socket && !options->payload;

	if (options->back && (!is_plain || options->arrival >= 0 || options->outputs != 1 || !options->back_router))
		return 0;
	return options->outputs == 1 || (options->outputs > 0 && options->outputs <= OUTPUTS_MAX && is_plain &&
					 !strchr(options->destination, ':'));
}

static struct options parse(int argc, char **argv)
{
	struct options options = { .ports = 1, .burst = 1, .flows = 1, .outputs = 1, .bytes = 64, .batch = 64, .core = -1,
				   .arrival = -1, .queue = 4096, .seconds = 1 };

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
		TEXT(back)
		NUMBER(port) NUMBER(ports) NUMBER(burst) NUMBER(rate) NUMBER(bytes) NUMBER(batch) NUMBER(timed)
		NUMBER(flows) NUMBER(mix) NUMBER(socket) NUMBER(queue) NUMBER(outputs)
#undef TEXT
#undef NUMBER
		if (!strcmp(key, "seconds"))
			options.seconds = atof(value);
		else if (!strcmp(key, "core"))
			options.core = atoi(value);
		else if (!strcmp(key, "arrival"))
			options.arrival = atoi(value);
		else {
			fprintf(stderr, "no option `%s`\n", key);
			exit(2);
		}
	}
	if (options.back && (options.back_router = strchr(options.back, ':')))
		*options.back_router++ = 0;
	if (!options.sender || !options.router || !options.sink || !options.source || !options.destination ||
	    !options.objects || options.bytes < 52 || options.bytes > IP_BYTES_MAX || !options.batch ||
	    options.batch > BATCH_MAX || !options.ports || !options.burst ||
	    !are_flows(&options) || !are_ways(&options) ||
	    (options.socket && (options.payload || options.mix || options.arrival >= 0)) ||
	    options.port + options.ports > 65536) {
		fprintf(stderr, "usage: trial sender= router= sink= source= destination= objects= port= rate= seconds= "
				"[bytes=52..%d] [batch=1..%d] [ports=] [burst=] [flows=] [mix=1] [socket=1] [core=] [timed=1] "
				"[payload=] [arrival=] [queue=] [back=] [outputs=1..16]\n",
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

/* Files of the kernel's counters; those of the network are of the namespace that they were opened in. */
struct files {
	FILE *sender, *router, *router_ip, *queues, *netlink, *backlog;
};

struct drops {
	uint64_t first_link, router_out, router_ip, queued, queue_full, queue_bypassed;
	uint64_t backlog[CORES_MAX];
};

static FILE *open_counters(const char *path, int is_needed)
{
	FILE *file = fopen(path, "re");

	if (!file && is_needed)
		die(path);
	return file;
}

/* Returns the sum of `tx_dropped` over the interfaces of a namespace, or of one. */
static uint64_t dropped_out(FILE *file, const char *interface)
{
	char line[512], name[64];
	uint64_t sum = 0;
	unsigned long long dropped;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %63[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", name, &dropped) == 2 &&
		    (!interface || !strcmp(name, interface)))
			sum += dropped;
	return sum;
}

/* Returns what IPv4 discarded in the router: the sum of InHdrErrors, InAddrErrors, InDiscards, OutDiscards, OutNoRoutes. */
static uint64_t discarded(FILE *file)
{
	char line[1024];
	unsigned long long errors[5];

	rewind(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Ip: %*u %*u %*u %llu %llu %*u %*u %llu %*u %*u %llu %llu", &errors[0], &errors[1],
			   &errors[2], &errors[3], &errors[4]) == 5)
			return errors[0] + errors[1] + errors[2] + errors[3] + errors[4];
	return 0;
}

static struct drops read_drops(const struct files *files, const struct options *options)
{
	const char *interface = strrchr(options->sender, ':') + 1;
	struct drops drops = { .first_link = dropped_out(files->sender, interface) +
					     (options->back ? dropped_out(files->sender, options->back) : 0),
			       .router_out = dropped_out(files->router, NULL),
			       .router_ip = discarded(files->router_ip) };
	char line[512];
	unsigned int dropped, protocol, core = 0;
	unsigned long long full, refused, queued, all_refused = 0;

	rewind(files->backlog);
	while (fgets(line, sizeof(line), files->backlog) && core < CORES_MAX)
		drops.backlog[core++] = sscanf(line, "%*x %x", &dropped) == 1 ? dropped : 0;
	if (!files->queues)
		return drops;
	rewind(files->queues);
	while (fgets(line, sizeof(line), files->queues))
		if (sscanf(line, "%*u %*u %*u %*u %*u %llu %llu %llu", &full, &refused, &queued) == 3) {
			drops.queue_full += full + refused;
			drops.queued += queued;
			all_refused += refused;
		}
	/* What a socket has no room for, the queue drops or lets pass; of the latter it counts nothing. */
	rewind(files->netlink);
	while (fgets(line, sizeof(line), files->netlink))
		if (sscanf(line, "%*s %u %*u %*x %*d %*d %*d %*d %u", &protocol, &dropped) == 2 && protocol == NETLINK_NETFILTER)
			drops.queue_bypassed += dropped;
	drops.queue_bypassed -= drops.queue_bypassed < all_refused ? drops.queue_bypassed : all_refused;
	return drops;
}

static void print_drops(const struct drops *before, const struct drops *after, uint64_t arrival_lost)
{
	long cores = sysconf(_SC_NPROCESSORS_CONF);

	printf("\"drops\":{\"arrival_lost\":%llu,\"first_link\":%llu,\"router_out\":%llu,\"router_ip\":%llu,\"queued\":%llu,\"queue_full\":%llu,"
	       "\"queue_bypassed\":%llu,\"backlog\":[",
	       (unsigned long long)arrival_lost,
	       (unsigned long long)(after->first_link - before->first_link),
	       (unsigned long long)(after->router_out - before->router_out),
	       (unsigned long long)(after->router_ip - before->router_ip),
	       (unsigned long long)(after->queued - before->queued),
	       (unsigned long long)(after->queue_full - before->queue_full),
	       (unsigned long long)(after->queue_bypassed - before->queue_bypassed));
	for (long core = 0; core < cores && core < CORES_MAX; core++)
		printf("%s%llu", core ? "," : "", (unsigned long long)(after->backlog[core] - before->backlog[core]));
	printf("]}");
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

static int is_v6(const struct options *options)
{
	return strchr(options->destination, ':') != NULL;
}

/* Has a program count what arrives at an interface of this namespace. */
static void open_sink_at(const char *interface, int program, uint16_t protocol)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol),
				       .sll_ifindex = (int)if_nametoindex(interface) };
	/* Of no protocol until its filter is there. */
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;

	/* What is sent there is not counted. */
	if (fd < 0 || !address.sll_ifindex ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die(interface);
}

static struct sink_state *open_sink(const struct options *options)
{
	void *state;
	struct bpf_kind kind = { .type = BPF_PROG_TYPE_SOCKET_FILTER };
	int program = bpf_load(kind, options->objects, "sink.bpf.o", sizeof(struct sink_state), &state);
	char interfaces[256], *rest = interfaces, *interface;

	snprintf(interfaces, sizeof(interfaces), "%s", enter(options->sink));
	while ((interface = strsep(&rest, ",")))
		open_sink_at(interface, program, is_v6(options) ? ETH_P_IPV6 : ETH_P_IP);
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

static void bad_address(void)
{
	fprintf(stderr, "source and destination are IPv4 addresses, or both are IPv6 addresses\n");
	exit(2);
}

/* Makes an IPv6 frame without a probe and without a checksum, which nobody on the way looks at; returns its length. */
static uint32_t make_v6_frame(union frame *frame, const struct options *options, uint64_t bytes)
{
	struct ip6_hdr ip = { .ip6_plen = htons((uint16_t)(bytes - sizeof(ip))), .ip6_nxt = IPPROTO_UDP, .ip6_hlim = 64 };

	ip.ip6_vfc = 6 << 4;
	if (inet_pton(AF_INET6, options->source, &ip.ip6_src) != 1 ||
	    inet_pton(AF_INET6, options->destination, &ip.ip6_dst) != 1 || bytes < V6_HEADER_BYTES - ETH_HLEN + 24)
		bad_address();
	frame->v6.ethernet.ether_type = htons(ETHERTYPE_IPV6);
	frame->v6.ip = ip;
	frame->v6.udp.source = htons(FIRST_SOURCE);
	frame->v6.udp.dest = htons((uint16_t)options->port);
	frame->v6.udp.len = ip.ip6_plen;
	frame->v6.udp.check = htons(1);
	return (uint32_t)(sizeof(struct ether_header) + bytes);
}

/* Makes a frame without a probe, of so many bytes of an IP packet; returns its length. */
static uint32_t make_frame(union frame *frame, const struct options *options, uint64_t bytes)
{
	if (is_v6(options))
		return make_v6_frame(frame, options, bytes);

	if (options->payload) {
		FILE *file = fopen(options->payload, "rb");

		if (!file)
			die(options->payload);
		bytes = 28 + fread(frame->v4.payload, 1, IP_BYTES_MAX - 28, file);
		fclose(file);
	}
	struct iphdr ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP, .tot_len = htons((uint16_t)bytes),
			    .id = htons(FIRST_ID) };

	if (inet_pton(AF_INET, options->source, &ip.saddr) != 1 ||
	    inet_pton(AF_INET, options->destination, &ip.daddr) != 1)
		bad_address();
	ip.check = header_checksum(&ip);
	frame->v4.ethernet.ether_type = htons(ETHERTYPE_IP);
	frame->v4.ip = ip;
	frame->v4.udp.source = htons(FIRST_SOURCE);
	frame->v4.udp.dest = htons((uint16_t)options->port);
	frame->v4.udp.len = htons((uint16_t)(bytes - sizeof(struct iphdr)));
	return (uint32_t)(sizeof(struct ether_header) + bytes);
}

/* Opens a socket that sends whole frames, as fast programs do. */
static int open_packet_socket(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1, buffer = 16 * 1024 * 1024;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)) < 0)
		die("opening a packet socket");
	return fd;
}

static int make_map_of_cores(void)
{
	union bpf_attr map = { .map_type = BPF_MAP_TYPE_CPUMAP, .key_size = 4, .value_size = sizeof(struct bpf_cpumap_val) };

	map.max_entries = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	return bpf_call(BPF_MAP_CREATE, &map, "making a map of cores (Linux 4.15)");
}

/* Gives the kernel's thread of a core's queue what every program of the router has: to run before other programs. */
static void favour_arrival(int core)
{
	char path[64], name[64], wanted[32];
	DIR *processes = opendir("/proc");

	snprintf(wanted, sizeof(wanted), "cpumap/%d/", core);
	for (struct dirent *entry; processes && (entry = readdir(processes));) {
		snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
		FILE *file = fopen(path, "re");

		if (file && fgets(name, sizeof(name), file) && !strncmp(name, wanted, strlen(wanted)))
			setpriority(PRIO_PROCESS, (id_t)atoi(entry->d_name), -20);
		if (file)
			fclose(file);
	}
	if (processes)
		closedir(processes);
}

/* Makes a queue of a core that leads to an interface of this namespace. */
static const struct arrival_state *open_arrival(const struct options *options, int map, const char *interface)
{
	void *memory;
	struct bpf_kind kind = { .type = BPF_PROG_TYPE_XDP, .attached = BPF_XDP_CPUMAP };
	int program = bpf_load(kind, options->objects, "arrival.bpf.o", sizeof(struct arrival_state), &memory);
	struct bpf_cpumap_val value = { .qsize = (uint32_t)options->queue, .bpf_prog.fd = program };
	union bpf_attr set = { .map_fd = (uint32_t)map, .key = (uint64_t)(uintptr_t)&options->arrival,
			       .value = (uint64_t)(uintptr_t)&value };
	struct arrival_state *state = memory;

	state->interface = if_nametoindex(interface);
	bpf_call(BPF_MAP_UPDATE_ELEM, &set, "making the queue of a core (Linux 5.9)");
	favour_arrival(options->arrival);
	return state;
}

/* Makes the headers of the packets of one way, of all sizes, and a frame of the longest; returns the frame's length. */
static uint32_t make_headers(struct generator_state *state, int way, union frame *frame, const struct options *options)
{
	static const uint64_t mix[] = MIX_BYTES;

	/* The last one is the longest, whose frames the others are cut from. */
	for (uint32_t i = 0; i < SIZES_MAX; i++) {
		state->frame_bytes[i] = make_frame(frame, options, options->mix ? mix[i] : options->bytes);
		memcpy(state->header[way][i], frame, V6_HEADER_BYTES);
	}
	return state->frame_bytes[SIZES_MAX - 1];
}

static struct generator open_generator(const struct options *options, uint32_t run, struct files *files)
{
	struct generator generator = { .batch = (uint32_t)options->batch, .socket = -1 };
	struct options reversed = *options;
	union frame back = { 0 };
	void *memory;

	reversed.source = options->destination;
	reversed.destination = options->source;
	hardware_address(enter(options->router), generator.frame.v4.ethernet.ether_dhost);
	if (options->back)
		hardware_address(options->back_router, back.v4.ethernet.ether_dhost);
	files->router = open_counters("/proc/thread-self/net/dev", 1);
	files->router_ip = open_counters("/proc/thread-self/net/snmp", 1);
	files->queues = open_counters("/proc/thread-self/net/netfilter/nfnetlink_queue", 0);
	files->netlink = open_counters("/proc/thread-self/net/netlink", 1);
	const char *interface = enter(options->sender);

	files->sender = open_counters("/proc/thread-self/net/dev", 1);
	files->backlog = open_counters("/proc/thread-self/net/softnet_stat", 1);

	hardware_address(interface, generator.frame.v4.ethernet.ether_shost);
	if (options->back)
		hardware_address(options->back, back.v4.ethernet.ether_shost);
	struct bpf_kind kind = { .type = BPF_PROG_TYPE_XDP, .map = make_map_of_cores() };

	generator.program =
		bpf_load(kind, options->objects, "generator.bpf.o", sizeof(struct generator_state), &memory);
	struct generator_state *state = memory;

	if (options->arrival >= 0) {
		generator.arrival = open_arrival(options, kind.map, interface);
		state->is_queued = 1;
		state->core = (uint32_t)options->arrival;
	}

	state->step_ps = options->rate ? 1000 * NS_PER_S / options->rate : 0;
	state->warm_up = options->rate ? options->rate * WARM_UP_NS / NS_PER_S / 2 : WARM_UP_PACKETS;
	state->length_ns = (uint64_t)(options->seconds * NS_PER_S);
	state->late_ns = LATE_NS;
	state->gap_ns = GAP_NS;
	state->interface = if_nametoindex(interface);
	state->run = run;
	state->port = (uint32_t)options->port;
	state->ports = (uint32_t)options->ports;
	state->burst = (uint32_t)options->burst;
	state->flows = (uint32_t)(options->flows > SOURCE_PORTS_MAX ? SOURCE_PORTS_MAX : options->flows);
	state->sources = (uint32_t)(options->flows / state->flows);
	state->is_v6 = is_v6(options);
	state->is_mix = options->mix != 0;
	state->outputs = (uint32_t)options->outputs;
	state->back_interface = options->back ? if_nametoindex(options->back) : 0;
	make_headers(state, 1, &back, &reversed);
	generator.frame_bytes = make_headers(state, 0, &generator.frame, options);
	memcpy(state->payload, generator.frame.v4.payload, sizeof(state->payload));
	if (options->socket)
		generator.socket = open_packet_socket(interface);
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

/* Writes what differs from packet to packet: ports and the probe. */
static void fill(union frame *frame, const struct generator *generator, uint64_t number, uint64_t now)
{
	const struct generator_state *state = generator->state;
	char *udp = (char *)frame + (state->is_v6 ? V6_HEADER_BYTES : HEADER_BYTES) - sizeof(struct udphdr);
	uint16_t ports[2] = { htons((uint16_t)(FIRST_SOURCE + number % state->flows)),
			      htons((uint16_t)(state->port + number / state->burst % state->ports)) };
	struct probe probe = { .magic = htonl(PROBE_MAGIC), .run = state->run, .sequence = htobe64(number),
			       .sent_ns = htobe64(now) };

	if (state->sources > 1) {
		uint16_t further = (uint16_t)(number / state->flows % state->sources);
		uint32_t source = ntohl(generator->frame.v4.ip.saddr);

		frame->v4.ip.saddr = htonl(source + further);
		frame->v4.ip.id = htons((uint16_t)(FIRST_ID - further));
	}
	memcpy(udp, ports, sizeof(ports));
	memcpy(udp + sizeof(struct udphdr), &probe, sizeof(probe));
}

/* Sends from a socket as the generator in the kernel does; its state tells how it went. A wait is a nanosecond here. */
static void send_from_socket(const struct generator *generator)
{
	static union frame frames[BATCH_MAX];
	static struct mmsghdr messages[BATCH_MAX];
	static struct iovec vectors[BATCH_MAX];
	struct generator_state *state = generator->state;

	for (uint32_t i = 0; i < generator->batch; i++) {
		frames[i] = generator->frame;
		vectors[i] = (struct iovec){ .iov_base = &frames[i], .iov_len = generator->frame_bytes };
		messages[i].msg_hdr.msg_iov = &vectors[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	state->start_ns = state->asked_ns = now_ns();
	while (!stopped) {
		uint64_t now = now_ns(), passed = now - state->asked_ns;

		if (state->end_ns && now >= state->end_ns)
			break;
		if (state->begin_ns && passed >= state->gap_ns) {
			state->gaps++;
			state->gaps_ns += passed;
			state->longest_gap_ns = passed > state->longest_gap_ns ? passed : state->longest_gap_ns;
		}
		state->asked_ns = now;
		uint64_t step_ps = state->packets < state->warm_up ? 2 * state->step_ps : state->step_ps;
		uint64_t due = state->start_ns + state->paced * step_ps / 1000;

		if (now < due) {
			state->waits += passed;
			state->early += state->begin_ns ? passed : 0;
			continue;
		}
		if (now - due > state->late_ns) {
			state->start_ns = now;
			state->paced = 0;
		}
		for (uint32_t i = 0; i < generator->batch; i++)
			fill(&frames[i], generator, state->packets + i, now);
		int sent = sendmmsg(generator->socket, messages, generator->batch, 0);

		if (sent < 0) {
			if (errno != ENOBUFS && errno != EINTR && errno != EAGAIN)
				die("sendmmsg");
			continue;
		}
		state->packets += (uint64_t)sent;
		state->paced += (uint64_t)sent;
		if (!state->begin_ns && state->packets >= state->warm_up) {
			state->warm_up = state->packets;
			state->begin_ns = state->start_ns = now_ns();
			state->end_ns = state->begin_ns + state->length_ns;
			state->paced = 0;
		}
	}
}

/* Returns what it costs to ask the generator when nothing is due, in ns. */
static double measure_wait(const struct generator *generator)
{
	struct timespec before, after;

	if (generator->socket >= 0)
		return 1;
	generator->state->end_ns = 1;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	run(generator, WAITS_MEASURED);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	generator->state->end_ns = generator->state->waits = generator->state->start_ns = 0;
	generator->state->asked_ns = 0;
	return ((double)(after.tv_sec - before.tv_sec) * NS_PER_S + (double)(after.tv_nsec - before.tv_nsec)) /
	       WAITS_MEASURED;
}

static void send_all(const struct generator *generator)
{
	uint64_t ns = generator->state->length_ns + WARM_UP_NS + SLACK_NS;
	struct itimerval timer = { .it_value = { (time_t)(ns / NS_PER_S), (suseconds_t)(ns % NS_PER_S / 1000) } };

	setitimer(ITIMER_REAL, &timer, NULL);
	if (generator->socket >= 0)
		return send_from_socket(generator);
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
	struct files files;
	struct generator generator = open_generator(&options, run_id, &files);
	double wait_ns = measure_wait(&generator);
	const struct generator_state *state = generator.state;

	sink->mode = options.payload ? SINK_FROM_PORT : SINK_NUMBERED;
	sink->port = htons((uint16_t)options.port);
	sink->timed = options.timed != 0;
	sink->payload_at = is_v6(&options) ? V6_HEADER_BYTES : HEADER_BYTES;
	sink->turns = options.back ? WAYS_MAX : (uint32_t)options.outputs;
	sink->timed_from = state->warm_up;
	sink->run = run_id;
	struct drops before = read_drops(&files, &options);
	uint64_t began = now_ns();
	double idle = idle_seconds();

	send_all(&generator);
	double passed = (double)(now_ns() - began) / NS_PER_S;
	double busy = (double)sysconf(_SC_NPROCESSORS_ONLN) * passed - (idle_seconds() - idle) -
		      (double)state->waits * wait_ns / NS_PER_S;
	settle(sink, state->packets);
	struct drops after = read_drops(&files, &options);
	uint64_t offered = state->packets > state->warm_up ? state->packets - state->warm_up : 0;
	double length_ns = (double)state->length_ns;

	/* A frame that the queue took has been handed on by now. */
	uint64_t arrival_lost = generator.arrival ? state->packets - generator.arrival->taken : 0;

	printf("{\"sent\":%llu,\"received\":%llu,\"duplicates\":%llu,\"reordered\":%llu,\"foreign\":%llu,"
	       "\"asked\":%.0f,\"offered\":%llu,\"rate\":%.0f,\"waited\":%.4f,\"gaps\":%llu,\"gaps_ms\":%.1f,"
	       "\"longest_gap_ms\":%.1f,\"cpu_ns\":%.1f,\"wait_ns\":%.1f,"
	       "\"latency_us\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"p999\":%.1f},",
	       (unsigned long long)state->packets, (unsigned long long)sink->received,
	       (unsigned long long)sink->duplicates, (unsigned long long)sink->reordered,
	       (unsigned long long)sink->foreign,
	       options.rate ? (double)options.rate * options.seconds : (double)offered, (unsigned long long)offered,
	       state->begin_ns ? (double)offered * NS_PER_S / length_ns : 0.0, (double)state->early * wait_ns / length_ns,
	       (unsigned long long)state->gaps, (double)state->gaps_ns / 1e6, (double)state->longest_gap_ns / 1e6,
	       state->packets ? busy * NS_PER_S / (double)state->packets : 0.0, wait_ns, quantile(sink, 0.5),
	       quantile(sink, 0.9), quantile(sink, 0.99), quantile(sink, 0.999));
	print_drops(&before, &after, arrival_lost);
	printf("}\n");
	return 0;
}
