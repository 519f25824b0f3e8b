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

// maxZeros is how large a hole may be that is read, in bytes: a record may have so many zeros.
const maxZeros = 64 << 20

// extent is how much of the first size bytes of a file is worth reading: up to the first hole that no
// record has. A hole takes no space on the disk, and may have any size.
func extent(f *os.File, size int64) (int64, error) {
	end := int64(0)
	for end < size {
		data, err := f.Seek(end, seekData)
		if errors.Is(err, syscall.ENXIO) || err == nil && data-end > maxZeros {
			break
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
