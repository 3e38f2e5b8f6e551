// notify COMMAND: the least that a notification engine can be, in C, for comparison (bench_notify.sh). It is told of every call that names a
// path, copies the path, walks it with openat2 from the caller's root as the gate's first look does, and lets the kernel go on.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP 1
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static const struct { int nr, dir, path; } calls[] = {
	{SYS_openat, 0, 1}, {SYS_newfstatat, 0, 1}, {SYS_statx, 0, 1}, {SYS_faccessat, 0, 1}, {SYS_faccessat2, 0, 1}, {SYS_readlinkat, 0, 1},
	{SYS_execve, -1, 0}, {SYS_chdir, -1, 0}, {SYS_statfs, -1, 0},
#ifdef SYS_open
	{SYS_open, -1, 0}, {SYS_stat, -1, 0}, {SYS_lstat, -1, 0}, {SYS_access, -1, 0}, {SYS_readlink, -1, 0},
#endif
};
#define N ((int)(sizeof calls / sizeof *calls))

static void die(const char *what) { perror(what); exit(125); }

static int filter(void) {
	struct sock_filter f[N + 3];
	f[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < N; i++) f[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].nr, N - i, 0);
	f[N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[N + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	struct sock_fprog p = {N + 3, f};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &p);
}

static void pass_fd(int sock, int *fd, int out) {
	char byte = 0, room[CMSG_SPACE(sizeof *fd)] = {0};
	struct iovec v = {&byte, 1};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	if (out) {
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof *fd);
		memcpy(CMSG_DATA(c), fd, sizeof *fd);
		if (sendmsg(sock, &h, 0) != 1) die("sendmsg");
	} else {
		if (recvmsg(sock, &h, 0) != 1 || !CMSG_FIRSTHDR(&h)) die("recvmsg");
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof *fd);
	}
}

// look copies the path of a call, makes it absolute and walks it.
static void look(int root, struct seccomp_notif *n) {
	char path[2 * 4096], name[4096];
	int i = 0, len = 0;
	while (i < N && calls[i].nr != n->data.nr) i++;
	if (i == N) return;
	unsigned long at = n->data.args[calls[i].path];
	struct iovec to = {name, 4096 - (at & 4095)}, from = {(void *)at, 4096 - (at & 4095)};
	if (process_vm_readv(n->pid, &to, 1, &from, 1, 0) <= 0 || !memchr(name, 0, to.iov_len)) return;
	if (name[0] != '/') {
		char link[64];
		int dir = calls[i].dir < 0 ? AT_FDCWD : (int)n->data.args[calls[i].dir];
		if (!name[0]) return;
		if (dir == AT_FDCWD) sprintf(link, "/proc/%d/cwd", n->pid); else sprintf(link, "/proc/%d/fd/%d", n->pid, dir);
		if ((len = readlink(link, path, 4095)) < 0) return;
		path[len++] = '/';
	}
	strcpy(path + len, name);
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED};
	int fd = syscall(SYS_openat2, root, path, &how, sizeof how);
	if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
	int pair[2], fd, root = open("/", O_PATH | O_CLOEXEC), status;
	if (argc < 2) return fprintf(stderr, "usage: notify COMMAND...\n"), 125;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) die("socketpair");
	pid_t child = fork();
	if (child < 0) die("fork");
	if (!child) {
		fd = filter();
		if (fd < 0) die("seccomp");
		pass_fd(pair[1], &fd, 1);
		close(fd);
		execvp(argv[1], argv + 1);
		die(argv[1]);
	}
	close(pair[1]);
	pass_fd(pair[0], &fd, 0);
	ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	pid_t waiter = fork(); // the supervisor proper; its parent reports the end of the command
	if (waiter < 0) die("fork");
	if (!waiter) {
		prctl(PR_SET_PDEATHSIG, 9);
		for (;;) {
			struct seccomp_notif n = {0};
			struct seccomp_notif_resp r = {0};
			if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &n)) {
				struct pollfd p = {fd};
				if (errno != EINTR && (errno != ENOENT || poll(&p, 1, 0) > 0)) _exit(0); // nobody is left
				continue;
			}
			look(root, &n);
			r.id = n.id, r.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
			ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &r);
		}
	}
	close(fd);
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
