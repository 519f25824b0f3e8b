package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	code = regexp.MustCompile("(?s)```.*?```")
	test = regexp.MustCompile(`^(Test|Fuzz)[A-Z0-9]\w*$`)
	link = regexp.MustCompile(`\[([^\]]+)\]\(([^)#]+)(?:#[^)]*)?\)`)
)

// What the documents name is there: files, and tests in them.
func TestLinks(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	docs := []string{"README.md", "docs/ARCHITECTURE.md", "docs/RELIABILITY.md", "docs/FEATURES.md", "docs/EVIDENCE.md", "docs/COMPARISON.md", "docs/adr/README.md"}
	guide, err := filepath.Glob(filepath.Join(root, "docs", "guide", "*.md"))
	if err != nil || len(guide) == 0 {
		t.Fatal("no guide", err)
	}
	for _, path := range guide {
		docs = append(docs, "docs/guide/"+filepath.Base(path))
	}
	for _, doc := range docs {
		t.Run(doc, func(t *testing.T) { checkLinks(t, filepath.Join(root, filepath.FromSlash(doc))) })
	}
}

var mapped = regexp.MustCompile("`([a-z_]+\\.go)`")

// The file maps name each file of the machine and of the view, and no other, once.
func TestFileMap(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	for title, dir := range map[string]string{"The machine": "internal/machine", "The view": "view"} {
		var named []string
		for line := range strings.Lines(sectionOf(string(text), title)) {
			if row, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | "); strings.HasPrefix(line, "| `") {
				for _, m := range mapped.FindAllStringSubmatch(row, -1) {
					named = append(named, m[1])
				}
			}
		}
		all, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var there []string
		for _, path := range all {
			if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") && name != "doc.go" {
				there = append(there, name)
			}
		}
		slices.Sort(named)
		if !slices.Equal(named, there) {
			without := func(of, others []string) []string {
				return slices.DeleteFunc(slices.Clone(of), func(file string) bool { return slices.Contains(others, file) })
			}
			t.Errorf("the map of %s in docs/ARCHITECTURE.md lacks %v, and has %v, which are not there or stand twice", dir, without(there, named), without(named, there))
		}
	}
}

func checkLinks(t *testing.T, doc string) {
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	links := link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1)
	if len(links) == 0 && filepath.Base(filepath.Dir(doc)) != "guide" {
		t.Fatal("no links")
	}
	for _, l := range links {
		if strings.HasPrefix(l[2], "https://") {
			continue
		}
		target := filepath.Join(filepath.Dir(doc), filepath.FromSlash(l[2]))
		info, err := os.Stat(target)
		if err != nil {
			t.Error(err)
			continue
		}
		if !test.MatchString(l[1]) || info.IsDir() {
			continue
		}
		source, err := os.ReadFile(target)
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(source), "func "+l[1]+"(") {
			t.Errorf("%s is not in %s", l[1], l[2])
		}
	}
}
