#include "textflag.h"

// What the kernel calls on the thread's signal stack, whatever the thread was doing: it is no Go code, and uses nothing of Go's.
TEXT caughtSignal<>(SB),NOSPLIT|NOFRAME,$0
	PUSHQ	DI // the signal
	MOVLQSX	·caught(SB), DI
	MOVQ	SP, SI
	MOVQ	$1, DX
	MOVQ	$1, AX // SYS_write
	SYSCALL
	POPQ	DI
	RET

TEXT caughtReturn<>(SB),NOSPLIT|NOFRAME,$0
	MOVQ	$15, AX // SYS_rt_sigreturn
	SYSCALL
	INT	$3

// func onSignal() (handler, restorer uintptr)
TEXT ·onSignal(SB),NOSPLIT,$0-16
	LEAQ	caughtSignal<>(SB), AX
	MOVQ	AX, handler+0(FP)
	LEAQ	caughtReturn<>(SB), AX
	MOVQ	AX, restorer+8(FP)
	RET
