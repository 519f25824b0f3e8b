package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/regular"
)

// source is a file as it was last looked at. Not safe for concurrent use.
type source struct {
	ctx    context.Context // ends the conversion of a file
	path   string
	config *Config
	seen   sighting

	// sum is of the bytes that were last read, and parsed what was wrong with them.
	sum    *[sha256.Size]byte
	parsed error
	taken  time.Time // sighting.since of the file that held them last

	// content is the last that was good; nil if there was none. It and the trouble that
	// there is with the file now are numbered as they change, from 1.
	content          *content
	fault            error
	contents, faults int

	references map[string]*reference        // files that the content refers to, by their paths
	states     map[string][sha256.Size]byte // of the Secrets, by their files: what these held when they were last left alone
}

// sighting is what the system said of a file, to tell whether it is being written.
type sighting struct {
	info    fs.FileInfo // nil if there was none
	since   time.Time   // when it was first seen so
	moved   bool        // it came as another file, and was not written in place
	restive time.Time   // since when it was not left alone; zero if it was
}

// impatience is how many times [Config.Settle] a file may be written to without a pause
// before that is a fault.
const impatience = 100

// settling is how long the file has to be left alone yet before it may be read.
func (s *sighting) settling(now time.Time, info fs.FileInfo, settle time.Duration) time.Duration {
	other := s.info == nil || !os.SameFile(s.info, info)
	if other || s.info.Size() != info.Size() || !s.info.ModTime().Equal(info.ModTime()) {
		s.info, s.since, s.moved = info, now, other
	}
	age := now.Sub(info.ModTime())
	if age < 0 || !s.moved { // another's clock, or one that counts in seconds
		age = now.Sub(s.since)
	}
	if age >= settle {
		s.restive = time.Time{}
		return 0
	}
	if s.restive.IsZero() {
		s.restive = now
	}
	return settle - age
}

// check looks at the file. It returns when to look again because the file is being
// written, or 0.
func (s *source) check(now time.Time) time.Duration {
	// FILE-2: a file that is not there is a fault.
	f, info, err := regular.Open(s.path)
	if err != nil {
		s.seen = sighting{}
		s.setFault(err)
		return 0
	}
	defer f.Close()
	if wait := s.seen.settling(now, info, s.config.Settle); wait > 0 {
		if now.Sub(s.seen.restive) > impatience*s.config.Settle {
			s.setFault(ErrUnsettled)
		}
		return wait
	}
	if !s.read(f, info.Size()) {
		return max(s.config.Settle, time.Millisecond)
	}
	return 0
}

// read takes in what a file holds, if that is new. It is false if the file was written
// meanwhile.
func (s *source) read(f *os.File, size int64) bool {
	limit := s.config.MaxSize
	if size > limit {
		s.setFault(&SizeError{Limit: limit})
		return true
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		s.setFault(err)
		return true
	case n > limit:
		s.setFault(&SizeError{Limit: limit})
		return true
	}
	sum := [sha256.Size]byte(hash.Sum(nil))
	if s.sum != nil && *s.sum == sum {
		s.setFault(s.parsed)
		// TTL-1: each receipt begins the time anew.
		if s.parsed == nil && s.content.limited && !s.taken.Equal(s.seen.since) {
			s.contents++
		}
		s.taken = s.seen.since
		return true
	}
	data, err := reread(f, n)
	if err != nil {
		s.setFault(err)
		return true
	}
	if sha256.Sum256(data) != sum {
		return false
	}
	s.taken = s.seen.since
	s.take(data, sum)
	return true
}

// reread reads a file of so many bytes again, and one more if there is.
func reread(f *os.File, size int64) ([]byte, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(size) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(f, size+1))
	return b.Bytes(), err
}

// take makes the content of what was read.
func (s *source) take(data []byte, sum [sha256.Size]byte) {
	s.sum = &sum
	c, err := s.parse(data, sum)
	if err == errStopped {
		return // nobody hears of it
	}
	if s.parsed = err; err != nil {
		s.setFault(err)
		return
	}
	if s.config.v2 {
		c.typeURL = apiv2.ToV2(c.typeURL) // the other is as good
	}
	c.refers = referencesOf(c, s.config.Types)
	s.content, s.fault = c, nil
	s.contents++
}

// parse makes content of bytes, and does not wait for that once the stream is over: what is left
// of it goes on for nobody, and soon ends.
func (s *source) parse(data []byte, sum [sha256.Size]byte) (c *content, err error) {
	old, done := s.content, make(chan struct{})
	var made *content
	var fault error
	go func() {
		defer close(done)
		made, fault = parse(s.ctx, s.path, data, sum, old, s.config)
	}()
	select {
	case <-done:
		return made, fault
	case <-s.ctx.Done():
		return nil, errStopped
	}
}

// setFault notes what is wrong with the file; nil if nothing is, after which the content
// counts as new: it is the end of the trouble.
func (s *source) setFault(err error) {
	if err == nil {
		if s.fault != nil {
			s.fault = nil
			s.contents++
		}
		return
	}
	err = &Error{Path: s.path, Err: reason(err)}
	if s.fault == nil || s.fault.Error() != err.Error() {
		s.fault = err
		s.faults++
	}
}
