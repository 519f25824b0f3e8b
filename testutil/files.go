package testutil

import (
	"errors"
	"fmt"
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
type ConfigMap struct{ dir string }

// NewConfigMap makes the volume in a directory, which must exist.
func NewConfigMap(dir string, files map[string][]byte) (*ConfigMap, error) {
	m := &ConfigMap{dir}
	if err := m.Set(files); err != nil {
		return nil, fmt.Errorf("config map: %w", err)
	}
	return m, nil
}

// Path is that of a file of the volume.
func (m *ConfigMap) Path(name string) string { return filepath.Join(m.dir, name) }

// Set replaces all files at once. Links to those that are no more are removed after that.
func (m *ConfigMap) Set(files map[string][]byte) error {
	old, _ := os.Readlink(m.Path("..data")) // there is none at first
	links, _ := os.ReadDir(m.Path("..data"))
	next, err := os.MkdirTemp(m.dir, "..2000_01_01_00_00_00.")
	if err != nil {
		return err
	}
	err = os.Chmod(next, 0o755) // as Kubernetes has it
	for name, data := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(next, name), data, 0o644))
	}
	err = errors.Join(err, os.Symlink(filepath.Base(next), m.Path("..data_tmp")))
	if err != nil {
		return err
	}
	err = os.Rename(m.Path("..data_tmp"), m.Path("..data"))
	for name := range files {
		if !slices.ContainsFunc(links, func(e os.DirEntry) bool { return e.Name() == name }) {
			err = errors.Join(err, os.Symlink(filepath.Join("..data", name), m.Path(name)))
		}
	}
	for _, e := range links {
		if _, ok := files[e.Name()]; !ok {
			err = errors.Join(err, os.Remove(m.Path(e.Name())))
		}
	}
	if old != "" {
		err = errors.Join(err, os.RemoveAll(m.Path(old)))
	}
	return err
}
