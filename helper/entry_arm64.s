#include "textflag.h"

// See entry_amd64.s.
TEXT sbx_helper_start(SB),NOSPLIT|NOFRAME,$0
	MOVD	$175, R8 // geteuid
	SVC
	CBNZW	R0, runtime
	MOVD	$20, R20
stops:
	MOVD	R20, R0
	MOVD	$ignored<>(SB), R1
	MOVD	ZR, R2
	MOVD	$8, R3
	MOVD	$134, R8 // rt_sigaction
	SVC
	ADD	$1, R20
	CMP	$23, R20
	BNE	stops
	MOVD	$176, R8 // getgid
	SVC
	MOVW	R0, ·entered+4(SB)
	MOVD	R0, R1
	MOVD	R0, R2
	MOVD	$149, R8 // setresgid
	SVC
	CBNZW	R0, broken
	MOVD	$174, R8 // getuid
	SVC
	MOVW	R0, ·entered+0(SB)
	MOVWU	R0, R19
	MOVD	ZR, R0
	MOVD	R19, R1
	MOVD	ZR, R2
	MOVD	$147, R8 // setresuid
	SVC
	CBNZW	R0, broken
	MOVD	$capHeader<>(SB), R0
	MOVD	$capData<>(SB), R1
	MOVD	$91, R8 // capset
	SVC
	CBNZW	R0, broken
	CBZW	R19, runtime // sudo's word is in the environment
	MOVD	RSP, R9
	MOVD	0(R9), R10
	LSL	$3, R10
	ADD	R10, R9, R9
	ADD	$16, R9, R9 // argc, argv, NULL
	MOVD	R9, R10
skip:
	MOVD.P	8(R10), R11
	CBNZ	R11, skip
	MOVD.P	ZR, 8(R9)
move:	// The auxiliary vector belongs right after the environment's end.
	MOVD.P	8(R10), R11
	MOVD.P	8(R10), R12
	MOVD.P	R11, 8(R9)
	MOVD.P	R12, 8(R9)
	CBNZ	R11, move
runtime:
	JMP	_rt0_arm64_linux(SB)
broken:
	MOVD	$74, R0
	MOVD	$94, R8 // exit_group
	SVC
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
