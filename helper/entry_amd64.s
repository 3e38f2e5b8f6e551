#include "textflag.h"

// sbx_helper_start is where the helper begins, linked with -E=sbx_helper_start (see the Makefile). What it does
// must come before the Go runtime, which reads files of /sys and /proc and obeys the caller's GODEBUG, and
// before there is a second thread. Started with root's effective uid, it takes the caller's gid, and the caller's
// uid as the effective one: that is whose authority over files it has and who is charged for namespaces. The real
// and the saved uid become 0, so that the caller can no longer stop, kill or trace it (kill(2)). No capability stays
// effective; those that reduce.go and group.go need stay permitted. Set-user-id, it forgets the environment.
TEXT sbx_helper_start(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, BX
	MOVQ	$107, AX // geteuid
	SYSCALL
	TESTL	AX, AX
	JNE	runtime
	MOVL	$20, R13 // SIGTSTP, then SIGTTIN and SIGTTOU: a terminal stops whom its user may not signal
stops:
	MOVQ	R13, DI
	LEAQ	ignored<>(SB), SI
	XORL	DX, DX
	MOVQ	$8, R10
	MOVQ	$13, AX // rt_sigaction
	SYSCALL
	INCQ	R13
	CMPQ	R13, $23
	JNE	stops
	MOVQ	$104, AX // getgid
	SYSCALL
	MOVL	AX, ·entered+4(SB)
	MOVQ	AX, DI
	MOVQ	AX, SI
	MOVQ	AX, DX
	MOVQ	$119, AX // setresgid
	SYSCALL
	TESTL	AX, AX
	JNE	broken
	MOVQ	$102, AX // getuid
	SYSCALL
	MOVL	AX, ·entered+0(SB)
	MOVL	AX, R12
	XORL	DI, DI
	MOVL	R12, SI
	XORL	DX, DX
	MOVQ	$117, AX // setresuid: sets the fsuid too, and makes no capability effective
	SYSCALL
	TESTL	AX, AX
	JNE	broken
	LEAQ	capHeader<>(SB), DI
	LEAQ	capData<>(SB), SI
	MOVQ	$126, AX // capset
	SYSCALL
	TESTL	AX, AX
	JNE	broken
	TESTL	R12, R12
	JEQ	runtime // sudo's word is in the environment
	MOVQ	0(BX), CX
	LEAQ	16(BX)(CX*8), DI // argc, argv, NULL
	MOVQ	DI, SI
skip:
	MOVQ	(SI), AX
	ADDQ	$8, SI
	TESTQ	AX, AX
	JNE	skip
	MOVQ	AX, (DI)
	ADDQ	$8, DI
move:	// The auxiliary vector belongs right after the environment's end.
	MOVQ	(SI), AX
	MOVQ	8(SI), DX
	MOVQ	AX, (DI)
	MOVQ	DX, 8(DI)
	ADDQ	$16, SI
	ADDQ	$16, DI
	TESTQ	AX, AX
	JNE	move
runtime:
	MOVQ	BX, SP
	JMP	_rt0_amd64_linux(SB)
broken:
	MOVQ	$74, DI
	MOVQ	$231, AX // exit_group
	SYSCALL
	JMP	broken

// struct sigaction: SIG_IGN.
DATA ignored<>+0(SB)/8, $1
GLOBL ignored<>(SB), RODATA|NOPTR, $32

// Version 3, this thread.
DATA capHeader<>+0(SB)/4, $0x20080522
GLOBL capHeader<>(SB), RODATA|NOPTR, $8

// Effective none; permitted SETGID, SETUID, SETPCAP, NET_ADMIN, SYS_ADMIN; inheritable none (capset(2)).
DATA capData<>+4(SB)/4, $0x2011c0
GLOBL capData<>(SB), RODATA|NOPTR, $24
