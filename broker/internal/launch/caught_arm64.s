#include "textflag.h"

// What the kernel calls on the thread's signal stack, whatever the thread was doing: it is no Go code, and uses nothing of Go's.
TEXT caughtSignal<>(SB),NOSPLIT|NOFRAME,$0
	SUB	$16, RSP
	MOVB	R0, (RSP) // the signal
	MOVW	·caught(SB), R0
	MOVD	RSP, R1
	MOVD	$1, R2
	MOVD	$64, R8 // SYS_write
	SVC
	ADD	$16, RSP
	RET

TEXT caughtReturn<>(SB),NOSPLIT|NOFRAME,$0
	MOVD	$139, R8 // SYS_rt_sigreturn
	SVC
	BRK

// func onSignal() (handler, restorer uintptr)
TEXT ·onSignal(SB),NOSPLIT,$0-16
	MOVD	$caughtSignal<>(SB), R0
	MOVD	R0, handler+0(FP)
	MOVD	$caughtReturn<>(SB), R0
	MOVD	R0, restorer+8(FP)
	RET
