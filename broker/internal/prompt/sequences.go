package prompt

// What sbx has a terminal do. A program may have left a string open, changed the character set, inserted instead of
// overwritten, moved the origin: none of that may change how what sbx says looks. Terminals differ in what they take
// for such a state, so each of them is ended every time, and no terminal is relied upon to be as the scanner has it.
// DECSC keeps what of it can be kept.

// abandon leaves what reads text as something else.
const abandon = "\x18" + endString + // most terminals end a string at CAN, and some at ST alone
	endString + // again, as the ESC of the first may follow another
	"\x1b\x03" + // ends Tektronix mode
	"\x1b<" // ends that of a VT52, which may take two characters for a place: those before it, then

const (
	endString     = "\x1b\\" // ST
	saveCursor    = "\x1b7"  // DECSC
	restoreCursor = "\x1b8"  // DECRC

	saveState    = saveCursor + attributes
	restoreState = "\x1b[m" + restoreCursor
)

// attributes has text look as it does of itself.
const attributes = "\x0f\x1b(B" + // the character set is ASCII (SI)
	"\x1b[0;10m" + // no colour; with 11 and 12 Linux shows other characters
	"\x1b[4l" + // nothing is inserted (IRM)
	"\x1b[?7h" // lines are wrapped (DECAWM)

// seen has text get to the screen.
const seen = "\x1b[?2026l" + // nothing is seen of an update that does not end
	"\x1b[4i" + // nor of what goes to a printer (MC)
	"\x1b[?64h" + // nor of a page that is not shown (DECPCCM)
	saveCursor + "\x1b[?69l\x1b[r" + restoreCursor // within margins rows scroll away; setting them moves the cursor

// itself is for text that was altered. All of it stays: only a program knows what it wants.
const itself = "\x1b]110" + endString + // the colour of text, which may be that behind it, is the terminal's again
	"\x1b]111" + endString + // and that behind it
	"\x1b]105" + endString + // and those of special text
	"\x1b]R" + endString + saveCursor + "\x1b[37;40m\x1b[8]" + restoreCursor + // all three on Linux
	"\x1b[0$}" + // it goes to the screen and not to the status line (DECSASD)
	"\x1b_Ga=d,d=a,q=2" + endString + // no image lies over it (kitty)
	"\x1b[0\"q" + // what is below it can be erased (DECSCA)
	"\x1b[8h" + "\x1b[0 k" // it is read from the left (BDSM, SCP)

// What takes back those two colours in the terminal outside.
const (
	outOfScreen = "\x1bP\x1b]110\x07\x1b]111\x07" + endString              // of GNU screen
	outOfTmux   = "\x1bPtmux;\x1b\x1b]110\x07\x1b\x1b]111\x07" + endString // of a tmux that hands on (allow-passthrough)
)

const (
	absolute    = "\x1b[?6l" // rows are addressed by number (DECOM); the cursor moves home
	singleWidth = "\x1b#5"   // of a row, which the guest's may not have been (DECSWL)
)

// Known has a terminal show the text behind it, in whatever state a program has left it. Colours that were made one are
// EndOutput's: a person may have chosen his own.
const Known = abandon + seen + attributes
