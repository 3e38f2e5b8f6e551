// Package option is the command line as data: rows of options and of commands, and all that follows from them, which
// is reading a line, help, completion and the manual's text. It knows no command of sbx, decides nothing and prints
// nothing. The command line has the rows.
package option
