// SPDX-License-Identifier: GPL-2.0-only
// Counts programs that are started, and remembers the last one. It uses struct task_struct.
#include "vmlinux.h"

char LICENSE[] __attribute__((section("license"), used)) = "GPL";

__u64 started;
int last;

// The arguments of sched_process_exec: the task, its old pid, and the program.
__attribute__((section("tp_btf/sched_process_exec"), used)) int count_exec(__u64 *arguments)
{
	struct task_struct *task = (struct task_struct *)arguments[0];

	__sync_fetch_and_add(&started, 1);
	last = task->tgid;
	return 0;
}
