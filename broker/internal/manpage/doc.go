// Package manpage writes the manual pages that follow from the tables of commands, options and settings, in man(7); the
// others are prose and lie with the packages. It prints nothing. command shows them: `sbx man PAGE`.
package manpage
