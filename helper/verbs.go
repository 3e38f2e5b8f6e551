package main

// verbs are what the helper may be asked for. selftest/linked builds it with each alone, to say how much of the text that is.
var verbs = [...]struct {
	name string
	do   func()
}{
	{"launch", launch},
	{"net", network},
	{"group", group},
}
