// Package rules lists the rules that the client follows, each in a line of our own words.
// Scripts and tests cite them by ID; docs/CONFORMANCE.md shows who proves what.
package rules

import "slices"

// Rule is one rule.
type Rule struct {
	ID   string
	Text string
	// Open says why the rule has no proof, where that is known.
	Open string
}

// Section is rules that belong together.
type Section struct {
	Title string
	Rules []Rule
}

// All lists every rule, in sections.
func All() []Section {
	return slices.Concat(protocol(), sources(), naming(), servers(), findings(), view(), store())
}

// IDs are the IDs of all rules.
func IDs() map[string]bool {
	ids := map[string]bool{}
	for _, s := range All() {
		for _, r := range s.Rules {
			ids[r.ID] = true
		}
	}
	return ids
}
