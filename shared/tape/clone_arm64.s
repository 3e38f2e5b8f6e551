#include "textflag.h"

// func rawClone(flags, stack uintptr, j *job, tid *int32) (pid, errno uintptr)
//
// See clone_amd64.s.
TEXT ·rawClone(SB),NOSPLIT|NOFRAME,$0-48
	MOVD	flags+0(FP), R0
	MOVD	stack+8(FP), R1
	MOVD	j+16(FP), R19
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	tid+24(FP), R4
	MOVD	$220, R8 // SYS_clone
	SVC
	CBZ	R0, child
	CMN	$4095, R0
	BCC	ok
	MOVD	$-1, R4
	MOVD	R4, pid+32(FP)
	NEG	R0, R0
	MOVD	R0, errno+40(FP)
	RET
ok:
	MOVD	R0, pid+32(FP)
	MOVD	ZR, errno+40(FP)
	RET
child:
	SUB	$32, RSP
	MOVD	R19, 8(RSP)
	MOVD	$·execJob(SB), R1
	CALL	(R1)
	UNDEF
