#include "textflag.h"

// func rawFront(stack uintptr, f *front) (tid, errno uintptr)
//
// clone(2) of a thread of this process that runs runFront(f) on the stack given.
TEXT ·rawFront(SB),NOSPLIT|NOFRAME,$0-32
	MOVQ	$0x50f00, DI // CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM
	MOVQ	stack+0(FP), SI
	MOVQ	f+8(FP), R12
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$0, R9
	MOVQ	$56, AX // SYS_clone
	SYSCALL
	CMPQ	AX, $0
	JEQ	child
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	MOVQ	$-1, tid+16(FP)
	NEGQ	AX
	MOVQ	AX, errno+24(FP)
	RET
ok:
	MOVQ	AX, tid+16(FP)
	MOVQ	$0, errno+24(FP)
	RET
child:
	MOVQ	R12, -16(SP)
	LEAQ	-16(SP), SP
	LEAQ	·runFront(SB), AX // not a direct call: it is on another stack than what leads here
	CALL	AX
	INT	$3
