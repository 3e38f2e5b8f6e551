// Package foreign reads settings of other tools in our terms and writes ours in theirs. What has no equivalent is
// listed, never dropped or guessed at. It must never read or write a file: text in, text out. policycmd calls it.
package foreign
