package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/xdswatch/xdswatch/internal/conformance/rules"
)

const preface = `# Conformance

Made by ` + "`make generate`" + ` from the headers of scripts and the comments of tests; not
edited by hand. Each rule stands in a line of our own words. A script is an exchange with a
server as text, in [testdata/scripts](../testdata/scripts); its first line says what it
shows.
`

// render writes the document.
func render(proofs map[string][]proof) []byte {
	var b bytes.Buffer
	b.WriteString(preface)
	all, proven := 0, 0
	for _, s := range rules.All() {
		for _, r := range s.Rules {
			all++
			if len(proofs[r.ID]) > 0 {
				proven++
			}
		}
	}
	fmt.Fprintf(&b, "\n%d of %d rules are proven.\n", proven, all)
	for _, s := range rules.All() {
		renderProven(&b, s, proofs)
	}
	renderOpen(&b, proofs)
	renderMutations(&b)
	return b.Bytes()
}

func renderProven(b *bytes.Buffer, s rules.Section, proofs map[string][]proof) {
	title := "\n## " + s.Title + "\n\n| rule | what | proof |\n| --- | --- | --- |\n"
	for _, r := range s.Rules {
		if len(proofs[r.ID]) == 0 {
			continue
		}
		fmt.Fprintf(b, "%s| %s | %s | %s |\n", title, r.ID, r.Text, links(proofs[r.ID]))
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
	b.WriteString("Each of these breaks a rule at one place of the machine; `make mutate` shows that the script\nthen fails.\n\n")
	b.WriteString("| rule | what is broken | where | noticed by |\n| --- | --- | --- | --- |\n")
	for _, mu := range rules.Mutations() {
		fmt.Fprintf(b, "| %s | %s | `%s` | [%s](../%s/%s.txtar) |\n",
			mu.Rule, mu.Says, mu.File, mu.Script, scripts, mu.Script)
	}
}
