// SPDX-License-Identifier: Apache-2.0
/* An XDP program of `bpf/` as a function of this process. The build sets PROGRAM to the program's file and ENTRY to the
 * name of the function; it writes the program anew with `native_helper_N` in the place of the kernel's N-th helper. */
#include <string.h>

/* `Call` in `src/xdp/sys.rs`. */
struct call {
	unsigned char *data;
	unsigned char *data_end;
	unsigned int device;
	unsigned int queue;
	/* Returns the value of a key in a map, or nothing. */
	void *(*find)(void *maps, unsigned int map, const void *key);
	void *maps;
	unsigned long long now;
	/* What a look-up in the kernel's tables says. */
	unsigned char source_station[6];
	unsigned char destination_station[6];
	unsigned int out_device;
	int lookup_fails;
	/* The last question that was asked of the kernel's tables; `lookups` says how many there were. */
	unsigned int lookups;
	unsigned char asked[64];
};

/* `Map` in `src/xdp/sys.rs`. */
enum { MAP_TUPLES, MAP_FILTERS, MAP_INTERFACES, MAP_OWN, MAP_SOCKETS, MAP_HEART, MAP_COUNTERS, MAP_TARGETS };

static void *native_helper_1(void *map, const void *key);
static long native_helper_51(void *map, unsigned int key, unsigned long long flags);
static long native_helper_69(void *context, void *parameters, int bytes, unsigned int flags);
static unsigned long long native_helper_160(void);

#include PROGRAM

static __thread struct call *current;

static void *native_helper_1(void *map, const void *key)
{
	unsigned int kind;

	if (map == &tuples)
		kind = MAP_TUPLES;
	else if (map == &filters)
		kind = MAP_FILTERS;
	else if (map == &interfaces)
		kind = MAP_INTERFACES;
	else if (map == &own)
		kind = MAP_OWN;
	else if (map == &heart)
		kind = MAP_HEART;
	else if (map == &counters)
		kind = MAP_COUNTERS;
	else
		__builtin_trap();
	return current->find(current->maps, kind, key);
}

static long native_helper_51(void *map, unsigned int key, unsigned long long flags)
{
	unsigned int kind = map == &sockets ? MAP_SOCKETS : MAP_TARGETS;

	return current->find(current->maps, kind, &key) ? XDP_REDIRECT : (long)(flags & 3);
}

static unsigned long long native_helper_160(void)
{
	return current->now;
}

static long native_helper_69(void *context, void *parameters, int bytes, unsigned int flags)
{
	(void)context, (void)flags;
#ifdef FORWARDS
	struct lookup *lookup = parameters;

	if (bytes != sizeof(*lookup) || sizeof(*lookup) != sizeof(current->asked))
		__builtin_trap();
	if (!current->lookups++)
		memcpy(current->asked, parameters, sizeof(*lookup));
	if (current->lookup_fails)
		return 1;
	lookup->device = current->out_device;
	/* As the kernel does for a gateway of the other version. */
	lookup->family = lookup->family == FAMILY_V4 ? FAMILY_V6 : FAMILY_V4;
	memset(&lookup->destination, 0xfd, sizeof(lookup->destination));
	lookup->flow = 0x400;
	memcpy(lookup->source_station, current->source_station, 6);
	memcpy(lookup->destination_station, current->destination_station, 6);
#else
	(void)parameters, (void)bytes;
#endif
	return 0;
}

int ENTRY(struct call *call)
{
	struct xdp_md context = { 0 };

	context.data = (unsigned long)call->data;
	context.data_end = (unsigned long)call->data_end;
	context.ingress_ifindex = call->device;
	context.rx_queue_index = call->queue;
	current = call;
	return classify(&context);
}
