package main

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// serve puts a module into a proxy made of files, as the go command expects one ("go help
// goproxy").
func serve(t *testing.T, proxy, tree string, m *module, version string) {
	t.Helper()
	dir := filepath.Join(proxy, m.Path, "@v")
	must(t, os.MkdirAll(dir, 0o755))
	mod, err := os.ReadFile(filepath.Join(tree, m.dir, "go.mod"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, version+".mod"), mod, 0o644))
	info := fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version)
	must(t, os.WriteFile(filepath.Join(dir, version+".info"), []byte(info), 0o644))
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	must(t, err)
	z := zip.NewWriter(f)
	for _, name := range files(t, filepath.Join(tree, m.dir)) {
		b, err := os.ReadFile(filepath.Join(tree, m.dir, name))
		must(t, err)
		// Stored: to compress it takes longer than all else here.
		w, err := z.CreateHeader(&zip.FileHeader{Name: m.Path + "@" + version + "/" + filepath.ToSlash(name), Method: zip.Store})
		must(t, err)
		_, err = w.Write(b)
		must(t, err)
	}
	must(t, z.Close())
	must(t, f.Close())
}

// files lists those of a module: what is in a module below it, and what begins with a dot,
// is not of it.
func files(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	must(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file == root:
			return nil
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case d.IsDir():
			if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		rel, err := filepath.Rel(root, file)
		all = append(all, rel)
		return err
	}))
	return slices.Clip(all)
}
