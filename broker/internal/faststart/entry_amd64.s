#include "textflag.h"

// sbx_start is where a program begins that is linked with -E=sbx_start. Argument count and vector are at the
// stack pointer, as _rt0_amd64_linux expects to find them. A Go function reads its g through FS on entry;
// until the runtime sets FS itself, that is a word of zeros.
TEXT sbx_start(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, BX
	SUBQ	$64, SP
	ANDQ	$~15, SP
	MOVQ	BX, 32(SP)
	MOVQ	0(BX), CX
	MOVQ	CX, 0(SP)
	LEAQ	8(BX), DX
	MOVQ	DX, 8(SP)
	MOVQ	$158, AX // SYS_arch_prctl
	MOVQ	$0x1002, DI // ARCH_SET_FS
	LEAQ	entryTLS<>+32(SB), SI
	SYSCALL
	CALL	·enter(SB)
	MOVQ	32(SP), SP
	JMP	_rt0_amd64_linux(SB)

GLOBL entryTLS<>(SB), NOPTR, $64
