#include "textflag.h"

// See entry_amd64.s. A Go function keeps its g in a register here, and nothing needs to be set up.
TEXT sbx_start(SB),NOSPLIT|NOFRAME,$0
	MOVD	RSP, R19
	MOVD	0(R19), R0
	ADD	$8, R19, R1
	SUB	$64, RSP
	MOVD	R19, 40(RSP)
	MOVD	R0, 8(RSP)
	MOVD	R1, 16(RSP)
	MOVD	ZR, g
	CALL	·enter(SB)
	MOVD	40(RSP), R19
	MOVD	R19, RSP
	JMP	_rt0_arm64_linux(SB)
