#include "textflag.h"

// sbx_helper_start is where the helper begins, linked with -E=sbx_helper_start (see the Makefile). Where it
// was started with root's effective uid, it takes the caller's fsuid and fsgid and makes no capability
// effective, before the Go runtime reads its files of /sys and /proc or the caller's GODEBUG: from the
// first path on there is only the caller's authority. Those capabilities that reduce.go makes effective
// stay permitted, and no other. It uses no stack.
TEXT sbx_helper_start(SB),NOSPLIT|NOFRAME,$0
	MOVQ	$107, AX // geteuid
	SYSCALL
	TESTL	AX, AX
	JNE	runtime
	MOVQ	$104, AX // getgid
	SYSCALL
	MOVQ	AX, DI
	MOVQ	$123, AX // setfsgid
	SYSCALL
	MOVQ	$102, AX // getuid
	SYSCALL
	MOVQ	AX, DI
	MOVQ	$122, AX // setfsuid
	SYSCALL
	LEAQ	capHeader<>(SB), DI
	LEAQ	capData<>(SB), SI
	MOVQ	$126, AX // capset
	SYSCALL
	TESTL	AX, AX
	JEQ	runtime
	MOVQ	$74, DI
	MOVQ	$231, AX // exit_group
	SYSCALL
runtime:
	JMP	_rt0_amd64_linux(SB)

// Version 3, this thread.
DATA capHeader<>+0(SB)/4, $0x20080522
GLOBL capHeader<>(SB), RODATA|NOPTR, $8

// Effective none; permitted stage.DirectCaps; inheritable none (capset(2)).
DATA capData<>+4(SB)/4, $0x2011c0
GLOBL capData<>(SB), RODATA|NOPTR, $24
