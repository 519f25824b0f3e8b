package resources

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Tree calls visit with a path and with what is below it, in the order of names, but with nothing that
// is hidden. Links are followed; a directory to which several lead is visited once. err is why info or
// what is in a directory is lacking. Tree ends with the first error of visit.
func Tree(path string, visit func(name string, info fs.FileInfo, err error) error) error {
	var seen []fs.FileInfo // directories
	var walk func(name string) error
	walk = func(name string) error {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			return visit(name, info, err)
		}
		if slices.ContainsFunc(seen, func(d fs.FileInfo) bool { return os.SameFile(d, info) }) {
			return nil
		}
		seen = append(seen, info)
		entries, err := os.ReadDir(name)
		if err := visit(name, info, err); err != nil {
			return err
		}
		for _, e := range entries {
			if e.Name()[0] == '.' {
				continue
			}
			if err := walk(filepath.Join(name, e.Name())); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(path)
}
