#include "textflag.h"

// func rawClone(flags, stack uintptr, j *job, tid *int32) (pid, errno uintptr)
//
// The child never returns: it has nothing on its stack but j.
TEXT ·rawClone(SB),NOSPLIT|NOFRAME,$0-48
	MOVQ	flags+0(FP), DI
	MOVQ	stack+8(FP), SI
	MOVQ	j+16(FP), R12
	MOVQ	$0, DX
	MOVQ	tid+24(FP), R10
	MOVQ	$0, R8
	MOVQ	$0, R9
	MOVQ	$56, AX // SYS_clone
	SYSCALL
	CMPQ	AX, $0
	JEQ	child
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	MOVQ	$-1, pid+32(FP)
	NEGQ	AX
	MOVQ	AX, errno+40(FP)
	RET
ok:
	MOVQ	AX, pid+32(FP)
	MOVQ	$0, errno+40(FP)
	RET
child:
	MOVQ	R12, -16(SP)
	LEAQ	-16(SP), SP
	LEAQ	·execJob(SB), AX // not a direct call: it is on another stack than what leads here
	CALL	AX
	INT	$3
