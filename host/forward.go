//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"
)

// path is where iptables is looked for: never where the caller's PATH leads.
const path = "/usr/sbin:/usr/bin:/sbin:/bin"

// lockWait is how many seconds iptables waits for others who change rules.
const lockWait = 10

const table, forwardChain, dockerChain = "filter", "FORWARD", "DOCKER-USER"

// accepts are the rules for the devices of --net veth, which sbx-helper names sbx and six digits. They open less than
// they say: each device has a table of its own (helper/netrules.go) that lets packets go from the sandbox's address to
// the default route alone, and back only what belongs to a connection; what one table drops no other one lets pass.
func accepts() [2][]string {
	mark := []string{"-m", "comment", "--comment", "sbx-host allow-forward", "-j", "ACCEPT"}
	return [2][]string{
		append([]string{"-i", "sbx+"}, mark...),
		append([]string{"-o", "sbx+", "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"}, mark...),
	}
}

// forward lets packets of --net veth pass where the policy of FORWARD is DROP, as Docker makes it, or takes that back.
type forward struct {
	undo, dry bool
	out       io.Writer
	ipt       *iptables.IPTables
}

func (f forward) run() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can look at the host's firewall and change it; nothing was done")
	}
	// iptables inherits this environment: nothing of the caller's.
	os.Clearenv()
	if err := os.Setenv("PATH", path); err != nil {
		return err
	}
	var err error
	f.ipt, err = iptables.New(iptables.IPFamily(iptables.ProtocolIPv4), iptables.Timeout(lockWait))
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("iptables is not installed (package iptables; looked for in %s); nothing was done", path)
	}
	if err != nil {
		return err
	}
	rules, err := f.ipt.List(table, forwardChain)
	if err != nil {
		return fmt.Errorf("reading the chain %s: %w", forwardChain, err)
	}
	chains := []string{forwardChain}
	if slices.Contains(rules, "-A "+forwardChain+" -j "+dockerChain) {
		chains = []string{dockerChain, forwardChain} // Docker keeps what is in its users' chain
	}
	fmt.Fprintf(f.out, "policy of %s: %s\n", forwardChain, policy(rules))
	if f.undo {
		return f.remove(chains)
	}
	return f.insert(chains)
}

// policy is what becomes of packets that no rule of a chain is about.
func policy(rules []string) string {
	for _, r := range rules {
		if word, ok := strings.CutPrefix(r, "-P "+forwardChain+" "); ok {
			return word
		}
	}
	return "unknown"
}

// insert puts what is in none of the chains at the head of the first. Both rules stand then, or what it did is taken
// back.
func (f forward) insert(chains []string) error {
	var made [][]string
	list := accepts()
	for i := len(list) - 1; i >= 0; i-- { // the first one ends at the head
		r := list[i]
		there, err := f.holder(chains, r)
		if err == nil && there != "" {
			f.say("there already", "-A", there, r)
			continue
		}
		if err == nil {
			err = f.change("-I", chains[0], r, func() error { return f.ipt.Insert(table, chains[0], 1, r...) })
		}
		if err != nil {
			return errors.Join(fmt.Errorf("inserting a rule: %w", err), f.takeBack(chains[0], made))
		}
		made = append(made, r)
	}
	return nil
}

// takeBack removes the rules that insert made before it failed.
func (f forward) takeBack(chain string, made [][]string) error {
	if f.dry {
		return nil
	}
	for _, r := range made {
		if err := f.ipt.DeleteIfExists(table, chain, r...); err != nil {
			return fmt.Errorf("taking it back: %w", err)
		}
	}
	return nil
}

// remove takes the rules away wherever they are; Docker may have come in between.
func (f forward) remove(chains []string) error {
	found := false
	for _, chain := range chains {
		for _, r := range accepts() {
			there, err := f.ipt.Exists(table, chain, r...)
			if err == nil && there {
				found = true
				err = f.change("-D", chain, r, func() error { return f.ipt.Delete(table, chain, r...) })
			}
			if err != nil {
				return fmt.Errorf("removing a rule: %w", err)
			}
		}
	}
	if !found {
		fmt.Fprintln(f.out, "no rule of sbx-host is there")
	}
	return nil
}

// holder is the first chain that has the rule, "" for none.
func (f forward) holder(chains []string, rule []string) (string, error) {
	for _, chain := range chains {
		if there, err := f.ipt.Exists(table, chain, rule...); err != nil || there {
			return chain, err
		}
	}
	return "", nil
}

// change says what it does, or would do.
func (f forward) change(act, chain string, rule []string, do func() error) error {
	if f.dry {
		f.say("would run", act, chain, rule)
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	f.say("ran", act, chain, rule)
	return nil
}

func (f forward) say(what, act, chain string, rule []string) {
	words := slices.Clone(rule)
	for i, w := range words {
		if strings.Contains(w, " ") {
			words[i] = `"` + w + `"`
		}
	}
	fmt.Fprintf(f.out, "%s: iptables %s %s %s\n", what, act, chain, strings.Join(words, " "))
}
