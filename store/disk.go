package store

import (
	"io"
	"os"
	"syscall"
)

// disk is what changes files; a test takes another, that fails at any point.
type disk interface {
	// create makes a new file for its owner alone.
	create(path string) (file, error)
	// extend opens a file to append to it and to read it, and does not wait for the other end of a pipe.
	extend(path string) (file, error)
	rename(from, to string) error
	// syncDir has the names in a directory on disk.
	syncDir(path string) error
}

type file interface {
	io.WriteCloser
	io.ReaderAt
	Sync() error
	Truncate(size int64) error
}

type osDisk struct{}

func (osDisk) create(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (osDisk) extend(path string) (file, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_APPEND|syscall.O_NONBLOCK, 0o600)
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
