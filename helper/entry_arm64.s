#include "textflag.h"

// See entry_amd64.s.
TEXT sbx_helper_start(SB),NOSPLIT|NOFRAME,$0
	MOVD	$175, R8 // geteuid
	SVC
	CBNZW	R0, runtime
	MOVD	$176, R8 // getgid
	SVC
	MOVD	$152, R8 // setfsgid
	SVC
	MOVD	$174, R8 // getuid
	SVC
	MOVD	$151, R8 // setfsuid
	SVC
	MOVD	$capHeader<>(SB), R0
	MOVD	$capData<>(SB), R1
	MOVD	$91, R8 // capset
	SVC
	CBZW	R0, runtime
	MOVD	$74, R0
	MOVD	$94, R8 // exit_group
	SVC
runtime:
	JMP	_rt0_arm64_linux(SB)

// Version 3, this thread.
DATA capHeader<>+0(SB)/4, $0x20080522
GLOBL capHeader<>(SB), RODATA|NOPTR, $8

// Effective none; permitted stage.DirectCaps; inheritable none (capset(2)).
DATA capData<>+4(SB)/4, $0x2011c0
GLOBL capData<>(SB), RODATA|NOPTR, $24
