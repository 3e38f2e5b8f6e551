#include "textflag.h"

// func rawFront(stack uintptr, f *front) (tid, errno uintptr)
//
// See front_amd64.s.
TEXT ·rawFront(SB),NOSPLIT|NOFRAME,$0-32
	MOVD	$0x50f00, R0 // CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
	MOVD	stack+0(FP), R1
	MOVD	f+8(FP), R19
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$220, R8 // SYS_clone
	SVC
	CBZ	R0, child
	CMN	$4095, R0
	BCC	ok
	MOVD	$-1, R4
	MOVD	R4, tid+16(FP)
	NEG	R0, R0
	MOVD	R0, errno+24(FP)
	RET
ok:
	MOVD	R0, tid+16(FP)
	MOVD	ZR, errno+24(FP)
	RET
child:
	SUB	$32, RSP
	MOVD	R19, 8(RSP)
	MOVD	$·runFront(SB), R1
	CALL	(R1)
	UNDEF
