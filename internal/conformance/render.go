package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/xdswatch/xdswatch/internal/conformance/places"
	"github.com/xdswatch/xdswatch/internal/conformance/rules"
)

const preface = `# Conformance

Made by ` + "`make generate`" + ` from the comments of code, the headers of scripts and the comments of
tests; not edited by hand. Each rule stands in a line of our own words. *Where* are the functions
that obey it: its ID stands in a comment there, at the branch that makes it so. A script is an
exchange with a server as text, in [testdata/scripts](../testdata/scripts); its first line says
what it shows.
`

// render writes the document.
func render(proofs map[string][]proof, where map[string][]places.Place) []byte {
	var b bytes.Buffer
	b.WriteString(preface)
	all, proven, placed := 0, 0, 0
	for _, s := range rules.All() {
		for _, r := range s.Rules {
			all++
			if len(proofs[r.ID]) > 0 {
				proven++
				placed += min(1, len(where[r.ID]))
			}
		}
	}
	fmt.Fprintf(&b, "\n%d of %d rules are proven; of these, %d say where they stand.\n", proven, all, placed)
	for _, s := range rules.All() {
		renderProven(&b, s, proofs, where)
	}
	renderOpen(&b, proofs)
	renderMutations(&b)
	return b.Bytes()
}

func renderProven(b *bytes.Buffer, s rules.Section, proofs map[string][]proof, where map[string][]places.Place) {
	title := "\n## " + s.Title + "\n\n| rule | what | where | proof |\n| --- | --- | --- | --- |\n"
	for _, r := range s.Rules {
		if len(proofs[r.ID]) == 0 {
			continue
		}
		fmt.Fprintf(b, "%s| %s | %s | %s | %s |\n", title, r.ID, r.Text, functions(where[r.ID]), links(proofs[r.ID]))
		title = ""
	}
}

func links(ps []proof) string {
	var list []string
	for _, p := range ps {
		list = append(list, fmt.Sprintf("[%s](../%s)", p.name, p.path))
	}
	return strings.Join(list, ", ")
}

// functions links to the functions that a rule stands in, each once.
func functions(found []places.Place) string {
	var list []string
	for _, p := range found {
		text := fmt.Sprintf("[%s](../%s) `%s`", strings.TrimPrefix(p.Path, "internal/"), p.Path, p.In)
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}

func renderOpen(b *bytes.Buffer, proofs map[string][]proof) {
	b.WriteString("\n## Not yet\n\nRules that nothing here proves, whether or not the client follows them.\n\n")
	b.WriteString("| rule | what | why |\n| --- | --- | --- |\n")
	for _, s := range rules.All() {
		for _, r := range s.Rules {
			if len(proofs[r.ID]) == 0 {
				fmt.Fprintf(b, "| %s | %s | %s |\n", r.ID, r.Text, r.Open)
			}
		}
	}
}

func renderMutations(b *bytes.Buffer) {
	b.WriteString("\n## Mutations\n\n")
	b.WriteString("Each of these breaks a rule where it stands in the machine; `make mutate` shows that the script\nthen fails.\n\n")
	b.WriteString("| rule | what is broken | noticed by |\n| --- | --- | --- |\n")
	for _, mu := range rules.Mutations() {
		fmt.Fprintf(b, "| %s | without it: %s | [%s](../%s/%s.txtar) |\n", mu.Rule, mu.Says, mu.Script, scripts, mu.Script)
	}
}

// byRule sorts places by their rules.
func byRule(found []places.Place) map[string][]places.Place {
	by := map[string][]places.Place{}
	for _, p := range found {
		by[p.Rule] = append(by[p.Rule], p)
	}
	return by
}
