package prompt

// A program may have left a string open, changed the character set, inserted instead of overwritten, moved the origin:
// none of that may change how what sbx says looks. Terminals differ in what they take for such a state, so each of them
// is ended every time, and no terminal is relied upon to be as the scanner has it. DECSC keeps what of it can be kept.
const (
	// abandon leaves what reads text as something else. Most terminals end a string at CAN, and some at ST alone. That is
	// there twice, as the ESC of the first may follow another. ESC ETX ends Tektronix mode, and ESC < that of a VT52,
	// which may take two characters for a place: those before it, then.
	abandon      = "\x18\x1b\\\x1b\\\x1b\x03\x1b<"
	attributes   = "\x0f\x1b(B\x1b[0;10m\x1b[4l\x1b[?7h" // 11 and 12 have Linux show other characters
	saveState    = "\x1b7" + attributes
	absolute     = "\x1b[?6l" // also moves the cursor home: only where rows are addressed by number
	restoreState = "\x1b[m\x1b8"
	// Within margins rows would scroll away, or be a letter wide. Nothing is seen of an update that does not end
	// (2026), of what goes to a printer, nor of a page that is not shown (64). Setting margins moves the cursor.
	seen = "\x1b[?2026l\x1b[4i\x1b[?64h\x1b7\x1b[?69l\x1b[r\x1b8"
	// itself is for text that was altered. Its colours, which may be one and the same, are those of the terminal again
	// (]R and what follows are for Linux). It goes to the screen and not to the status line, no image lies over it, what
	// is below it can be erased, and it is read from the left. All stays: only a program knows what it wants.
	itself = "\x1b]110\x1b\\\x1b]111\x1b\\\x1b]105\x1b\\\x1b]R\x1b\\\x1b7\x1b[37;40m\x1b[8]\x1b8" +
		"\x1b[0$}" + "\x1b_Ga=d,d=a,q=2\x1b\\" + "\x1b[0\"q" + "\x1b[8h\x1b[0 k"
	// Those colours of the terminal in which GNU screen runs, or a tmux that hands such strings on (allow-passthrough).
	outOfScreen = "\x1bP\x1b]110\x07\x1b]111\x07\x1b\\"
	outOfTmux   = "\x1bPtmux;\x1b\x1b]110\x07\x1b\x1b]111\x07\x1b\\"
	single      = "\x1b#5" // a row of single width, which the guest's may not have been
)

// Known has a terminal show the text behind it, in whatever state a program has left it. Colours that were made one are
// EndOutput's: a person may have chosen his own.
const Known = abandon + seen + attributes
