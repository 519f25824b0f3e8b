package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\[([^\]]+)\]\(([^)#]+)\)`)

// What the reliability document names is there: files, and tests in them.
func TestReliabilityLinks(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "docs")
	doc, err := os.ReadFile(filepath.Join(dir, "RELIABILITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := link.FindAllStringSubmatch(string(doc), -1)
	if len(links) == 0 {
		t.Fatal("no links")
	}
	for _, l := range links {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(l[2])))
		if err != nil {
			t.Error(err)
		}
		isTest := strings.HasPrefix(l[1], "Test") || strings.HasPrefix(l[1], "Fuzz")
		if isTest && !strings.Contains(string(text), "func "+l[1]+"(") {
			t.Errorf("%s is not in %s", l[1], l[2])
		}
	}
}
