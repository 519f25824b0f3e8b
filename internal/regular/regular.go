// Package regular opens files that have to be regular ones. Whatever else a path may lead to
// can block who opens or reads it, or never end.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// How large a file may be, in bytes.
const (
	MaxSize      = 64 << 20  // a file of resources, where nobody says otherwise
	MaxBootstrap = 2 << 20   // a bootstrap, or a file of Secrets that it names
	MaxPEM       = 8 << 20   // certificates or a key
	MaxToken     = 256 << 10 // a token
)

// ErrNotRegular says that a path leads to a directory, a pipe, a socket or a device.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a file for reading. It does not wait for the other end of a pipe. The error is
// [ErrNotRegular] or the system's.
func Open(path string) (*os.File, fs.FileInfo, error) {
	if _, err := check(os.Stat(path)); errors.Is(err, ErrNotRegular) {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := check(f.Stat()) // the path may lead elsewhere by now
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// SizeError says that a file is larger than it may be.
type SizeError struct {
	Limit int64 // in bytes
}

// Error implements error.
func (e *SizeError) Error() string { return fmt.Sprintf("larger than the limit of %d bytes", e.Limit) }

// Named is an error of this package with the path, which those of the system have.
func Named(path string, err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok || err == nil {
		return err
	}
	return &fs.PathError{Op: "read", Path: path, Err: err}
}

func check(info fs.FileInfo, err error) (fs.FileInfo, error) {
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	return info, err
}

// Read reads a file of at most limit bytes. Its errors are those of [Open], those of reading,
// and one for a file that is larger.
func Read(path string, limit int64) ([]byte, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := info.Size()
	var data []byte
	if size <= limit { // as far as is known yet
		data, err = io.ReadAll(io.LimitReader(f, limit+1))
		size = int64(len(data))
	}
	if err == nil && size > limit {
		err = &SizeError{Limit: limit}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}
