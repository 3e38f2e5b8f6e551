// Package watch is the screen of `sbx watch`: all sessions of the user, what they use, what they ask, and
// what was decided. It must never touch a terminal but through the interface it is given, never show a guest's
// bytes unescaped, and never take a key for a question that was not on the screen when it was pressed.
// cli runs it; the model is pure, so that tests look at what people see.
package watch
