// SPDX-License-Identifier: GPL-2.0-only
/*
 * A few types and functions to encode. sample.elf beside this was made from it with
 *
 *	gcc -gdwarf-5 -O1 -fno-asynchronous-unwind-tables -ffile-prefix-map=$PWD=. \
 *	    -nostdlib -static -Wl,-e0 -Wl,--build-id=none,-z,noseparate-code -o sample.elf sample.c
 */

enum color { RED, GREEN = 5, BLUE };

typedef unsigned int u32;
typedef unsigned long long u64;

struct list {
	struct list *next, *prev;
};

struct packet {
	struct list node;
	enum color color;
	u32 urgent : 1;
	u32 length : 15;
	union {
		u64 stamp;
		char raw[8];
	};
	int (*handle)(struct packet *packet, const char *reason, ...);
	char data[];
};

int packet_length(const struct packet *packet)
{
	return packet->length;
}

int packet_handle(struct packet *packet, enum color color)
{
	packet->color = color;
	return packet->handle(packet, "because", packet_length(packet));
}
