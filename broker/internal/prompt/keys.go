package prompt

import "strings"

// interruptKey is Ctrl-C: a no, and on a program's own terminal the program hears of it, too.
const interruptKey = 0x03

// Keys reads the keys typed at a question so far. Ok: a is the answer. More: the sequence needs another
// key. Neither: it means nothing, and typing starts anew. No answer that grants is on Enter or space.
//
//	o s h f p allow once, for the session, for an hour, forever, forever in the project's policy
//	d t a w   the same (s h f p) for the directory, the tree, the program's own, the walk or domain; n v deny it
//	n v       deny once, never
//	r n, e n  deny the rest of what the program asks about, and everything, for the session
//	Esc ^C ^D deny once
func Keys(typed []byte, q *Question) (a Answer, more, ok bool) {
	if len(typed) == 0 {
		return a, true, false
	}
	switch typed[len(typed)-1] {
	case 0x1b, interruptKey, 0x04:
		return Answer{Scope: Once, Life: ForOnce}, false, true // of a secret it means more, see Answer.Normal
	}
	if q.Secret {
		return secretKeys(typed, q)
	}
	if q.Alone() {
		return hostKeys(typed, q)
	}
	first := typed[0]
	if len(typed) == 1 {
		if _, ok := wide(first, q); ok {
			return a, true, false
		}
		a, ok = lasting(first, q.Default())
		return a, false, ok
	}
	scope, isWide := wide(first, q)
	if !isWide || len(typed) > 2 || typed[1] == 'o' || typed[1] != 'n' && silences(scope) {
		return Answer{}, false, false
	}
	if typed[1] == 'n' { // "no" to a directory is worth a key only if it lasts
		return Answer{Scope: scope, Life: ForSession}, false, true
	}
	a, ok = lasting(typed[1], scope)
	return a, false, ok
}

// revealWord is what has to be typed, with Enter behind it, to show a secret: no single key does.
const revealWord = "reveal"

// secretKeys are the keys at a question about a secret.
func secretKeys(typed []byte, q *Question) (a Answer, more, ok bool) {
	switch said := string(typed); {
	case said == revealWord+"\r" || said == revealWord+"\n":
		return Answer{Allow: true, Scope: Revealed, Life: ForSession}, false, true
	case strings.HasPrefix(revealWord, said):
		return a, true, false
	case said == "n":
		return Answer{Scope: File, Life: ForSession}, false, true
	case said == "e":
		return a, true, false
	case said == "en":
		return Answer{Scope: Everything, Life: ForSession}, false, true
	}
	return a, false, false
}

// hostKeys are the keys at a question about what runs on the host, or after a decoy: a yes is for this once.
func hostKeys(typed []byte, q *Question) (a Answer, more, ok bool) {
	switch said := string(typed); {
	case said == "o", said == "n":
		a, ok = lasting(typed[0], Once)
		return a, false, ok
	case said == "r" && q.Exe != "", said == "e":
		return a, true, false
	case said == "rn" && q.Exe != "":
		return Answer{Scope: Program, Life: ForSession}, false, true
	case said == "en":
		return Answer{Scope: Everything, Life: ForSession}, false, true
	}
	return a, false, false
}

// wide reads a key that widens the answer, if the question can be widened that way.
func wide(k byte, q *Question) (Scope, bool) {
	switch {
	case k == 'r' && q.Exe != "":
		return Program, true
	case k == 'e':
		return Everything, true
	case k == 'd' && q.Host == "" && q.Container() != "/":
		return Dir, true
	case k == 't' && q.Host == "" && q.Container() != "/":
		return Tree, true
	case k == 'a' && q.OffersApp():
		return App, true
	case k == 'w' && q.Host == "" && q.Walk != "" && q.Walk != "/" && q.Walk != q.Container():
		return Walk, true
	case k == 'w' && q.Host != "" && q.Domain() != "":
		return Domain, true
	}
	return "", false
}

// silences says whether an answer is about all further questions: it is a no.
func silences(s Scope) bool { return s == Program || s == Everything }

// following says what may be typed after a key that widens an answer.
func following(first byte, q *Question) string {
	if q.Secret && first == revealWord[0] {
		return "type " + revealWord + " and Enter"
	}
	if scope, _ := wide(first, q); silences(scope) {
		return "[n]o, until the session ends"
	}
	if !q.Lasting() {
		return "[s]ession [h]our / [n]o / ne[v]er"
	}
	return "[s]ession [h]our [f]orever [p]roject / [n]o / ne[v]er"
}

func lasting(k byte, scope Scope) (Answer, bool) {
	switch k {
	case 'o':
		return Answer{Allow: true, Scope: Once, Life: ForOnce}, true
	case 's':
		return Answer{Allow: true, Scope: scope, Life: ForSession}, true
	case 'h':
		return Answer{Allow: true, Scope: scope, Life: ForHour}, true
	case 'f':
		return Answer{Allow: true, Scope: scope, Life: Forever, Persist: "user"}, true
	case 'p':
		return Answer{Allow: true, Scope: scope, Life: Forever, Persist: "project"}, true
	case 'n':
		return Answer{Scope: Once, Life: ForOnce}, true
	case 'v':
		return Answer{Scope: scope, Life: Forever, Persist: "user"}, true
	}
	return Answer{}, false
}
