package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/internal/conformance/rules"
)

// headers are the keys that a script's header may have, and the words that each knows; nil
// for any.
var headers = map[string][]string{
	"spec":      nil,
	"case":      nil,
	"server":    nil, // a driver fails where it does not know a word
	"authority": nil,
	"params":    nil,
	"client":    nil,
	"names":     nil,
	"show":      {"decode"},
	"only":      nil,
}

// Each script says in a sentence what it claims, and which known rules it proves.
func TestHeaders(t *testing.T) {
	known := rules.IDs()
	claims := map[string]string{}
	for _, file := range scriptFiles(t) {
		s, data := readScript(t, file)
		if !strings.HasPrefix(string(data), "# "+s.Claim+"\n") || !strings.HasSuffix(s.Claim, ".") {
			t.Errorf("%s: the first line is to be the claim, a sentence", s.Name)
		}
		if other := claims[s.Claim]; other != "" {
			t.Errorf("%s: claims the same as %s", s.Name, other)
		}
		claims[s.Claim] = s.Name
		if len(s.Headers["spec"]) == 0 {
			t.Errorf("%s: no rule in a spec header", s.Name)
		}
		for _, id := range s.Headers["spec"] {
			if !known[id] {
				t.Errorf("%s: %s is no rule", s.Name, id)
			}
		}
		for key, words := range s.Headers {
			checkHeader(t, s.Name, key, words)
		}
		if only, ok := s.Headers["only"]; ok && (len(only) < 2 || only[0] != "machine") {
			t.Errorf("%s: the header only says machine, and why", s.Name)
		}
	}
}

func checkHeader(t *testing.T, name, key string, words []string) {
	allowed, ok := headers[key]
	if !ok {
		t.Errorf("%s: there is no header %q", name, key)
	}
	for _, word := range words {
		if allowed != nil && !slices.Contains(allowed, word) {
			t.Errorf("%s: the header %s knows no %q", name, key, word)
		}
	}
}
