#include "textflag.h"

// func rawMourner(stack uintptr, b *mourning) (pid, errno uintptr)
//
// clone(2) with CLONE_VM and nothing else: a process of its own that shares this memory and runs mourn(b) on the stack given.
TEXT ·rawMourner(SB),NOSPLIT|NOFRAME,$0-32
	MOVQ	$0x100, DI // CLONE_VM; its end sends no signal
	MOVQ	stack+0(FP), SI
	MOVQ	b+8(FP), R12
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
	MOVQ	$-1, pid+16(FP)
	NEGQ	AX
	MOVQ	AX, errno+24(FP)
	RET
ok:
	MOVQ	AX, pid+16(FP)
	MOVQ	$0, errno+24(FP)
	RET
child:
	MOVQ	R12, -16(SP)
	LEAQ	-16(SP), SP
	LEAQ	·mourn(SB), AX // not a direct call: it is on another stack than what leads here
	CALL	AX
	INT	$3
