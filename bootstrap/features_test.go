package bootstrap

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Each field of Features has a word in gRPC's bootstrap, and the guide lists the words, and no other.
//
// spec: BOOT-5
func TestEveryFeature(t *testing.T) {
	page, err := os.ReadFile("../docs/guide/bootstrap.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for line := range strings.Lines(string(page)) {
		if word, ok := strings.CutPrefix(line, "| `"); ok {
			word, _, _ = strings.Cut(word, "`")
			listed = append(listed, word)
		}
	}
	all := ManagementServer{}
	var words []string
	for word, set := range serverFeatures {
		set(&all)
		words = append(words, word)
	}
	slices.Sort(listed)
	slices.Sort(words)
	if !slices.Equal(listed, words) {
		t.Errorf("the guide lists  %q\nthe client knows %q", listed, words)
	}
	for fields, i := reflect.ValueOf(all.Features), 0; i < fields.NumField(); i++ {
		if !fields.Field(i).Bool() {
			t.Errorf("no word sets Features.%s", fields.Type().Field(i).Name)
		}
	}
	_, example, _ := strings.Cut(string(page), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	if boot, err := Parse("guide", []byte(example)); err != nil || !boot.Servers[0].Delta || len(boot.Notices) > 0 {
		t.Errorf("the example: %v, %+v", err, boot)
	}
}
