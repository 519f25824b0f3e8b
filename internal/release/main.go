// Command release sets the version of the library and of all modules that are published with
// it, and says which tags make the release. It neither commits nor tags.
//
//	go run ./internal/release v0.2.0
package main

import (
	"fmt"
	"io"
	"os"
	"path"
)

func main() {
	if err := run(os.Args[1:], ".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string, root string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: go run ./internal/release vX.Y.Z, in the root of the repository")
	}
	version := args[0]
	modules, err := published(root)
	if err != nil {
		return err
	}
	if err := set(root, modules, version); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is set in %s and these modules:\n", version, versionFile)
	for _, m := range modules {
		fmt.Fprintf(out, "\t%s\n", m.Path)
	}
	fmt.Fprintf(out, "Name the version in CHANGELOG.md, run make check, commit, and tag that commit:\n")
	for _, m := range modules {
		fmt.Fprintf(out, "\tgit tag %s\n", path.Join(m.dir, version))
	}
	return nil
}
