package store

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// How lseek finds what has space on the disk.
const (
	seekData = 3
	seekHole = 4
)

// maxZeros is how much of the hole at the end of a file is read, in bytes: a record may end in zeros.
const maxZeros = 64 << 20

// extent is how much of the first size bytes of a file is worth reading: what lies behind the last
// byte that has space on the disk is no record, except for the end of the last one. A hole may have
// any size.
func extent(f *os.File, size int64) (int64, error) {
	end := int64(0)
	for end < size {
		data, err := f.Seek(end, seekData)
		if errors.Is(err, syscall.ENXIO) {
			break // nothing but a hole follows
		}
		if err == nil {
			end, err = f.Seek(data, seekHole)
		}
		if err != nil {
			end = size // the file system does not say
		}
	}
	_, err := f.Seek(0, io.SeekStart)
	return min(size, end+maxZeros), err
}
