package testutil

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// EncodeFile encodes a message as the suffix of a path asks for: .json, .yaml, .pb_text,
// and binary for any other. Equal messages need not give equal texts. The types of messages
// inside an Any must be linked in, but for binary.
func EncodeFile(path string, m proto.Message) ([]byte, error) {
	switch filepath.Ext(path) {
	case ".json":
		return protojson.Marshal(m)
	case ".yaml":
		b, err := protojson.Marshal(m)
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(b)
	case ".pb_text":
		return prototext.Marshal(m)
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// PlaceFile writes a file beside the path and moves it there, so that whoever reads the
// path finds the old content or the new.
func PlaceFile(path string, data []byte) error { return placeFile(path, data, 0o644) }

func placeFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the fault is told already
	}
	return err
}

// BeginFile empties a file, or makes it, and writes the first n bytes of data in place. What
// it returns writes the rest, and must be called.
func BeginFile(path string, data []byte, n int) (finish func() error, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(data[:n]); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		_, err := f.Write(data[n:])
		return errors.Join(err, f.Close())
	}, nil
}

// ConfigMap is a directory that changes as a Kubernetes volume of a ConfigMap or Secret
// does: each file is a symbolic link through the link ..data, which is swapped for one to
// another directory when any of them changed. Not safe for concurrent use.
type ConfigMap struct {
	dir     string
	swaps   int
	current string // where ..data leads; "" before the first
}

// NewConfigMap makes the volume in a directory, which must exist.
func NewConfigMap(dir string, files map[string][]byte) (*ConfigMap, error) {
	m := &ConfigMap{dir: dir}
	if err := m.Set(files); err != nil {
		return nil, fmt.Errorf("config map: %w", err)
	}
	return m, nil
}

// Path is that of a file of the volume.
func (m *ConfigMap) Path(name string) string { return filepath.Join(m.dir, name) }

// Set replaces all files at once. Links to those that are no more are removed after that.
func (m *ConfigMap) Set(files map[string][]byte) error {
	m.swaps++
	next := fmt.Sprintf("..2000_01_01_00_00_00.%d", m.swaps)
	if err := os.Mkdir(m.Path(next), 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(m.dir, next, name), files[name], 0o644); err != nil {
			return err
		}
	}
	if err := m.swap(next); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := os.Symlink(filepath.Join("..data", name), m.Path(name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	old := m.current
	m.current = next
	if old == "" {
		return nil
	}
	return m.clean(old, files)
}

// swap has ..data lead to another directory, in one step.
func (m *ConfigMap) swap(to string) error {
	if err := os.Symlink(to, m.Path("..data_tmp")); err != nil {
		return err
	}
	return os.Rename(m.Path("..data_tmp"), m.Path("..data"))
}

// clean removes what nothing leads to any more.
func (m *ConfigMap) clean(old string, files map[string][]byte) error {
	was, err := os.ReadDir(m.Path(old))
	if err != nil {
		return err
	}
	for _, e := range was {
		if _, ok := files[e.Name()]; ok {
			continue
		}
		if err := os.Remove(m.Path(e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(m.Path(old))
}
