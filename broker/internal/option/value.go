package option

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Value is where an option's value goes: how it is read, what it can be, and what it is as a setting.
type Value struct {
	Set     func(string) error
	Choices []string // the only values, where there are only some
	From    Source   // what the value names, for completion
	Filled  bool     // an empty value is a mistake: an empty variable is no wish to have none
	// the value of the setting that the row's key names; nil: not given. No function: the row's use sees to it
	Setting func() any
}

// given makes the setting of a plain value: what is zero was not given.
func given[T comparable](p *T) func() any {
	return func() any {
		var none T
		if *p == none {
			return nil
		}
		return *p
	}
}

// Text takes any text.
func Text(p *string) Value {
	return Value{Set: func(v string) error { *p = v; return nil }, Setting: given(p)}
}

// Choice takes one of a few words.
func Choice(p *string, choices ...string) Value {
	return Value{Choices: choices, Setting: given(p), Set: func(v string) error {
		if !slices.Contains(choices, v) {
			return fmt.Errorf("%s is not one of %s", quote(v), strings.Join(choices, ", "))
		}
		*p = v
		return nil
	}}
}

// Switch takes no value.
func Switch(p *bool) Value {
	return Value{Set: func(string) error { *p = true; return nil }, Setting: given(p)}
}

// Off is a switch whose setting it makes false.
func Off(p *bool) Value {
	v := Switch(p)
	v.Setting = func() any {
		if *p {
			return false
		}
		return nil
	}
	return v
}

// List collects values.
func List(p *[]string) Value {
	return Value{Set: func(v string) error {
		if v == "" {
			return fmt.Errorf("wants a value")
		}
		*p = append(*p, v)
		return nil
	}, Setting: func() any {
		if len(*p) == 0 {
			return nil
		}
		return *p
	}}
}

// Count takes a number from 1 up to what a pid can be.
func Count(p *int) Value {
	return Value{Setting: given(p), Set: func(v string) error {
		n, err := strconv.ParseUint(v, 10, 22)
		if err != nil || n == 0 {
			return fmt.Errorf("%s is not a number from 1 to 4194303", quote(v))
		}
		*p = int(n)
		return nil
	}}
}

// Duration takes a time; a plain number is seconds.
func Duration(p *time.Duration) Value {
	return Value{Set: func(v string) error {
		d, err := time.ParseDuration(v)
		if n, e := strconv.ParseUint(v, 10, 31); e == nil {
			d, err = time.Duration(n)*time.Second, nil
		}
		if err != nil || d < 0 {
			return fmt.Errorf("%s is not a duration such as 90s, 5m or 1h30m", quote(v))
		}
		*p = d
		return nil
	}, Setting: func() any {
		if *p == 0 {
			return nil
		}
		return p.String()
	}}
}

// Func takes what set reads.
func Func(set func(string) error) Value { return Value{Set: set} }

// Accepted takes what asks for something that is always so.
func Accepted() Value { return Func(func(string) error { return nil }) }

// As gives a value its form as a setting.
func (v Value) As(setting func() any) Value {
	v.Setting = setting
	return v
}

// With reads a value by another function, which sets what the setting is made of.
func (v Value) With(set func(string) error) Value {
	v.Set = set
	return v
}

// Apart is a value whose setting the row's use sees to.
func (v Value) Apart() Value { return v.As(nil) }

// NotEmpty is a value of which an empty one is a mistake.
func (v Value) NotEmpty() Value {
	v.Filled = true
	return v
}

// Of names what a value is taken from.
func (v Value) Of(from Source) Value {
	v.From = from
	return v
}

// Suggest names values to choose from, among others.
func (v Value) Suggest(choices ...string) Value {
	v.Choices = choices
	return v
}
