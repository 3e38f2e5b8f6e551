package session

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"slices"

	"sbx.example/sbx/broker/plan"
)

// labelsFile is where the session's folder says which labels it carries.
const labelsFile = "labels"

// WriteLabels leaves word of the labels that the session carries, each with the place whose reading brought it.
func (s *Session) WriteLabels(carried map[string]string) error {
	texts := make(map[string]plan.Bytes, len(carried))
	for label, place := range carried {
		texts[label] = plan.Bytes(place)
	}
	b, err := json.Marshal(texts)
	if err != nil {
		return err
	}
	return s.WriteFile(labelsFile, b)
}

// Labels are those that the session of a folder carries; none where there is no word of any.
func Labels(dir string) (map[string]string, error) {
	b, err := os.ReadFile(path.Join(dir, labelsFile))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	texts := map[string]plan.Bytes{}
	if err := json.Unmarshal(b, &texts); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(texts))
	for label, place := range texts {
		out[label] = string(place)
	}
	return out, nil
}

// SortedLabels are the names of labels.
func SortedLabels(carried map[string]string) []string { return slices.Sorted(maps.Keys(carried)) }
