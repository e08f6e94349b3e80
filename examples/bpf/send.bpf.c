// SPDX-License-Identifier: GPL-2.0-only
// Counts packets that are sent, and the bytes in them. It uses struct sk_buff.
#include "vmlinux.h"

char LICENSE[] __attribute__((section("license"), used)) = "GPL";

__u64 packets;
__u64 bytes;

// The argument of net_dev_queue: the packet.
__attribute__((section("tp_btf/net_dev_queue"), used)) int count_packet(__u64 *arguments)
{
	struct sk_buff *packet = (struct sk_buff *)arguments[0];

	__sync_fetch_and_add(&packets, 1);
	__sync_fetch_and_add(&bytes, packet->len);
	return 0;
}
