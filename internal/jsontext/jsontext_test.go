package jsontext

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// Each character that does not show is an escape, and all stand for what they were.
func TestVisible(t *testing.T) {
	var all strings.Builder
	for r := range rune(0x10000) {
		if r < 0xd800 || r > 0xdfff {
			all.WriteRune(r)
		}
	}
	for r := rune(0xe0000); r < 0xe0200; r++ { // tags and variation selectors
		all.WriteRune(r)
	}
	text, err := json.MarshalIndent(map[string]string{"all": all.String()}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	visible := Visible(text)
	for _, r := range string(visible) {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("%U is shown as it is", r)
		}
	}
	var back map[string]string
	if err := json.Unmarshal(visible, &back); err != nil || back["all"] != all.String() {
		t.Errorf("it stands for something else (%v)", err)
	}
}

func TestVisibleText(t *testing.T) {
	for text, want := range map[string]string{
		``:                         ``,
		"{\n \"ñ\": \"日本 👍\"\n}":   "{\n \"ñ\": \"日本 👍\"\n}",
		"\"\u202egnp.exe\"":        `"\u202egnp.exe"`,
		"\"a\x7f\u009b31m\u2066\"": `"a\u007f\u009b31m\u2066"`,
		"\"\U000e0041\ufeff\"":     `"\udb40\udc41\ufeff"`,
		"\"\xff\"":                 "\"\xff\"", // no JSON; nothing is made of it
	} {
		if got := string(Visible([]byte(text))); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// What can be seen is not copied.
func TestVisibleShares(t *testing.T) {
	text := []byte(`{"name": "ñ"}`)
	if got := Visible(text); &got[0] != &text[0] {
		t.Error("it is copied")
	}
}

func BenchmarkVisible(b *testing.B) {
	for name, one := range map[string]string{"ASCII": "cluster-000001", "Latin": "clúster-000001", "Japanese": "クラスタ", "hidden": "a\u202eb"} {
		text := []byte(strings.Repeat(one, 1<<20/len(one)))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Visible(text)
			}
		})
	}
}
