// SPDX-License-Identifier: GPL-2.0-only
/*
 * Start a command from a small process, and report what it took: launch FD COMMAND...
 *
 * Linux counts the largest memory of the process that starts a command to
 * that of the command, so whoever measures has to be smaller than all that is
 * measured. A Python is not: bpftool takes 5 MB.
 *
 * Writes "SECONDS KIBIBYTES STATUS PROCESSOR" to the open descriptor FD: wall
 * time, peak resident memory of the command or of its largest descendant, its
 * exit status (a negative signal number if it was killed), and the processor
 * seconds of all its threads and descendants.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
	return time.tv_sec + time.tv_usec / 1e6;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	double start;
	int report, status;
	pid_t child;

	if (argc < 3)
		return 64;
	report = atoi(argv[1]);
	fcntl(report, F_SETFD, FD_CLOEXEC);
	start = now();
	child = fork();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
		perror("launch");
		return 1;
	}
	dprintf(report, "%.6f %ld %d %.6f", now() - start, usage.ru_maxrss,
		WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status),
		seconds(usage.ru_utime) + seconds(usage.ru_stime));
	return 0;
}
