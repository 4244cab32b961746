/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends UDP packets through a router and counts what arrives behind it, never more than WINDOW of them on their way: as
 * fast as the router goes, without overloading it. One process on one core is both ends, in two network namespaces. It
 * gives and takes frames without their kernels' IP stacks, so that these take nothing from what is measured.
 *
 *   udploop SENDER:INTERFACE ROUTER:INTERFACE SINK:INTERFACE SOURCE DESTINATION PORT SECONDS WINDOW [IP_BYTES [CORE]]
 *
 * Namespaces are files, such as /run/netns/sender. The first two interfaces are the ends of one link; the third is where
 * the router sends the packets to: give it a neighbour entry with a MAC address that is nobody's, so that the sink's
 * kernel drops what it has counted. Runs 0.2 s before it counts. Prints one line of JSON at the end; `waits` is how often,
 * from 0 to 1, the window was full: near 1 the router is the slowest part, near 0 the generator is.
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#define BATCH 64
#define IP_BYTES_MAX 1500
#define WARM_UP_NS (NS_PER_S / 5)
#define LOST_NS (NS_PER_S / 5)

struct frame {
	struct ether_header ethernet;
	struct iphdr ip;
	struct udphdr udp;
	char payload[IP_BYTES_MAX];
} __attribute__((packed));

/* Enters the namespace of NAMESPACE:INTERFACE and returns the interface's name. */
static const char *enter(char *place)
{
	char *colon = strrchr(place, ':');

	if (!colon) {
		fprintf(stderr, "`%s` is not NAMESPACE:INTERFACE\n", place);
		exit(2);
	}
	*colon = 0;
	int fd = open(place, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || setns(fd, CLONE_NEWNET) < 0)
		die(place);
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

static int packet_socket(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1, buffer = 16 * 1024 * 1024;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die(interface);
	if (setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) < 0)
		die("PACKET_QDISC_BYPASS");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	return fd;
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

static void make_frame(struct frame *frame, char **argv, uint16_t bytes)
{
	frame->ethernet.ether_type = htons(ETHERTYPE_IP);
	frame->ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP, .tot_len = htons(bytes) };
	if (inet_pton(AF_INET, argv[4], &frame->ip.saddr) != 1 || inet_pton(AF_INET, argv[5], &frame->ip.daddr) != 1) {
		fprintf(stderr, "SOURCE and DESTINATION are IPv4 addresses\n");
		exit(2);
	}
	struct iphdr ip = frame->ip;

	frame->ip.check = header_checksum(&ip);
	frame->udp.source = htons(40000);
	frame->udp.dest = htons((uint16_t)number(argv[6]));
	frame->udp.len = htons((uint16_t)(bytes - sizeof(struct iphdr)));
}

/* Returns how many packets have arrived at an interface, from the text of /proc/net/dev. */
static uint64_t arrived(int fd, const char *interface)
{
	char text[8192], wanted[IFNAMSIZ + 2];
	ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t packets = 0;

	if (length < 0)
		die("/proc/net/dev");
	text[length] = 0;
	snprintf(wanted, sizeof(wanted), "%s:", interface);
	char *line = strstr(text, wanted);

	if (!line || sscanf(line + strlen(wanted), "%*u %lu", &packets) != 1) {
		fprintf(stderr, "no interface %s\n", interface);
		exit(1);
	}
	return packets;
}

int main(int argc, char **argv)
{
	static struct frame frame;
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec vector = { .iov_base = &frame };
	uint64_t sent = 0, received = 0, lost = 0, polls = 0, full = 0, refused = 0, counted_from = 0;

	if (argc < 9 || argc > 11) {
		fprintf(stderr, "usage: udploop SENDER:INTERFACE ROUTER:INTERFACE SINK:INTERFACE SOURCE DESTINATION PORT "
				"SECONDS WINDOW [IP_BYTES [CORE]]\n");
		return 2;
	}
	double seconds = atof(argv[7]);
	uint64_t window = number(argv[8]), bytes = argc > 9 ? number(argv[9]) : 64;

	if (bytes < 28 || bytes > IP_BYTES_MAX || window < BATCH) {
		fprintf(stderr, "28-%d bytes, window at least %d\n", IP_BYTES_MAX, BATCH);
		return 2;
	}
	prctl(PR_SET_TIMERSLACK, 1);
	pin(argc > 10 ? atoi(argv[10]) : -1);
	stop_on_signals();
	const char *sink = enter(argv[3]);
	/* It stays that of this namespace. */
	int counters = open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC);

	if (counters < 0)
		die("/proc/thread-self/net/dev");
	hardware_address(enter(argv[2]), frame.ethernet.ether_dhost);
	const char *source = enter(argv[1]);

	hardware_address(source, frame.ethernet.ether_shost);
	make_frame(&frame, argv, (uint16_t)bytes);
	vector.iov_len = sizeof(struct ether_header) + bytes;
	for (int i = 0; i < BATCH; i++) {
		messages[i].msg_hdr.msg_iov = &vector;
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	int out = packet_socket(source);
	uint64_t base = arrived(counters, sink), seen = 0, start = 0;
	uint64_t begin = now_ns(), now = begin, last = begin, end = begin + WARM_UP_NS + (uint64_t)(seconds * NS_PER_S);

	while (!stopped && now < end) {
		uint64_t count = arrived(counters, sink) - base;

		now = now_ns();
		polls++;
		if (count > seen) {
			seen = count;
			last = now;
		} else if (now - last > LOST_NS && sent > seen + lost) {
			lost = sent - seen;
			last = now;
		}
		if (!counted_from && now - begin >= WARM_UP_NS) {
			counted_from = now;
			start = seen;
			polls = full = 0;
		}
		if (sent + BATCH > seen + lost + window) {
			/* Asleep, it takes nothing from a router on the other thread of its core. */
			full++;
			nanosleep(&(struct timespec){ .tv_nsec = 20000 }, NULL);
			continue;
		}
		int accepted = sendmmsg(out, messages, BATCH, 0);

		if (accepted < 0 && errno != ENOBUFS && errno != EINTR)
			die("sendmmsg");
		sent += accepted > 0 ? (uint64_t)accepted : 0;
		refused += accepted < BATCH;
	}
	received = seen - start;
	double elapsed = (double)(now - (counted_from ? counted_from : begin)) / NS_PER_S;

	printf("{\"received\":%llu,\"lost\":%llu,\"refused\":%llu,\"seconds\":%.3f,\"rate\":%.0f,\"waits\":%.2f}\n",
	       (unsigned long long)received, (unsigned long long)lost, (unsigned long long)refused, elapsed,
	       (double)received / elapsed, polls ? (double)full / (double)polls : 0.0);
	return 0;
}
