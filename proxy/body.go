//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
)

// mediaType is that of a Content-Type, without parameters.
func mediaType(kind string) string {
	kind, _, _ = strings.Cut(kind, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

func isForm(kind string) bool { return mediaType(kind) == "application/x-www-form-urlencoded" }

// readObject reads a JSON object, and nothing behind it. Of a member that is there twice the last one counts.
func readObject(body []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil {
		return nil, errors.New("it is no JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is no JSON object alone")
	}
	return object, nil
}

// written is an object as JSON.
func written(object any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(object) != nil {
		return nil // what was read can be written
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// readForm reads a form as an object of texts, and of lists where a name is there more than once. A name that is no
// plain word may be another format in disguise.
func readForm(body []byte) (map[string]any, error) {
	values, err := url.ParseQuery(string(bytes.TrimSpace(body)))
	if err != nil {
		return nil, errors.New("it is no form")
	}
	object := map[string]any{}
	for name, list := range values {
		if strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) {
			return nil, errors.New("it is no form of plain names")
		}
		if object[name] = list[0]; len(list) > 1 {
			texts := make([]any, len(list))
			for i, text := range list {
				texts[i] = text
			}
			object[name] = texts
		}
	}
	return object, nil
}

// writtenForm is what readForm has read.
func writtenForm(object any) []byte {
	values := url.Values{}
	for name, v := range object.(map[string]any) {
		switch v := v.(type) {
		case string:
			values.Set(name, v)
		case []any:
			for _, text := range v {
				values.Add(name, text.(string))
			}
		}
	}
	return []byte(values.Encode())
}
