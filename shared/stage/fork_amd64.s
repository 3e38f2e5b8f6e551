#include "textflag.h"

// func rawVfork(flags uintptr) (pid, errno uintptr)
//
// clone(2) with CLONE_VM|CLONE_VFORK and no new stack: the child runs on the parent's stack while the
// parent waits. The child's calls overwrite the word that holds this function's return address, so it
// is kept in R12, which the kernel preserves for both.
TEXT ·rawVfork(SB),NOSPLIT|NOFRAME,$0-24
	MOVQ	flags+8(SP), DI
	MOVQ	$0, SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$0, R9
	MOVQ	$56, AX // SYS_clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	MOVQ	$-1, pid+16(SP)
	NEGQ	AX
	MOVQ	AX, errno+24(SP)
	RET
ok:
	MOVQ	AX, pid+16(SP)
	MOVQ	$0, errno+24(SP)
	RET
