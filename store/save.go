package store

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// maxBuffer is how large a buffer may be to be used again.
const maxBuffer = 4 << 20

// open makes the file ready for writing: as it is if it is whole, else anew.
func (s *section) open() (fault, err error) {
	if s.file != nil {
		switch here, err := os.Lstat(s.path); {
		case err == nil && os.SameFile(here, s.info) && here.Size() == s.size:
			return nil, nil
		case errors.Is(err, os.ErrNotExist):
			return nil, s.restore()
		}
		_ = s.fail() // there is another's file, or another has written to it
		s.broken = false
	}
	read := s.current() // to load from it
	w, info, err := s.content(partSize)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if !read {
		if err := s.learn(w, info); err != nil {
			return nil, err
		}
	}
	if fault = s.fault(); s.broken { // by this process, whose session goes on
		fault, s.own = nil, s.session > 0 && !s.foreign
	}
	if info != nil {
		s.dir.others -= info.Size()
	}
	if s.size == 0 || s.foreign || s.inside || s.ahead || s.rewrites {
		err = s.compact(w)
	} else {
		s.file, err = s.dir.disk.extend(s.path)
		if err == nil && s.damaged > 0 {
			// LKG-7: a process was killed while it wrote. What is there of that takes the room of what fits.
			if err = s.file.Truncate(s.end); err == nil {
				s.size, s.damaged = s.end, 0
			}
		}
		if err == nil && !s.own {
			s.session, s.own = s.session+1, true
			err = s.append(appendRecord(nil, &record{kind: recordBegin}, "", ""))
		}
	}
	if err != nil {
		_ = s.fail()
	}
	return fault, err
}

// restore puts the file, which is open, there again: somebody has removed it, or its directory.
func (s *section) restore() error {
	removed := s.file
	s.file = nil
	if err := s.compact(&window{file: removed, size: s.size, ahead: partSize}); err != nil {
		s.file = removed
		return err
	}
	return removed.Close()
}

// fail closes the file after an error; the next Save opens it anew.
func (s *section) fail() error {
	s.broken, s.known = true, false
	err := s.close()
	if info, statErr := os.Lstat(s.path); statErr == nil {
		s.dir.others += info.Size()
	}
	return err
}

func (s *section) close() (err error) {
	if s.file != nil {
		err = s.file.Close()
	}
	s.file = nil
	return err
}

// wasteful says that the file is to be written anew, since reading it takes long for what it holds.
func (s *section) wasteful() bool { return s.size+touchCost*s.touched > 2*s.live+slack }

// append writes at the end of the file.
func (s *section) append(b []byte) error {
	if _, err := s.file.Write(b); err != nil {
		return errors.Join(err, s.file.Truncate(s.size)) // what is there of it would take the room of what fits
	}
	s.size += int64(len(b))
	return s.file.Sync()
}

// save writes changes.
func (s *section) save(changes []client.StoredResource) error {
	fault, err := s.open()
	if err != nil {
		return notSaved(err)
	}
	b, full := s.encode(changes)
	if len(b) > 0 {
		if err := s.append(b); err != nil {
			return notSaved(errors.Join(err, s.fail()))
		}
	}
	if s.dir.buffer = b; cap(b) > maxBuffer {
		s.dir.buffer = nil
	}
	s.broken = false
	if s.wasteful() {
		if err := s.shrink(); err != nil {
			return errors.Join(fault, err, s.fail()) // the changes are there
		}
	}
	if full > 0 {
		return errors.Join(fault, &FullError{full, s.dir.options.MaxSize})
	}
	return fault
}

// shrink compacts the file that is written.
func (s *section) shrink() error {
	w, _, err := s.content(partSize)
	if err != nil {
		return err
	}
	defer w.close()
	return s.compact(w)
}

func notSaved(err error) error { return fmt.Errorf("%w: %w", client.ErrNotSaved, err) }

// encode makes the records of changes, and counts those for which there is no room.
func (s *section) encode(changes []client.StoredResource) (b []byte, full int) {
	now := time.Now().UnixNano()
	b = s.dir.buffer[:0]
	if len(changes) == 0 {
		s.alive = now
		return appendRecord(b, &record{kind: recordAlive, time: now}, "", ""), 0
	}
	room := int64(math.MaxInt64 / 2)
	if s.dir.options.MaxSize > 0 {
		room = s.dir.options.MaxSize - s.dir.size()
	}
	need := 0
	for i := range changes {
		need += len(changes[i].Resource) + len(changes[i].Name) + len(changes[i].Server) + maxRest
	}
	b = slices.Grow(b, need)
	t := touches{record: record{kind: recordTouch, time: now}}
	for i := range changes {
		c := &changes[i]
		had := s.find(c.Name)
		if c.Resource == nil {
			b = s.forget(b, c.Name, now, had)
			continue
		}
		r := record{kind: recordPut, time: now, updated: c.Updated.UnixNano(), resource: c.Resource}
		if !c.Expires.IsZero() {
			r.expires = c.Expires.UnixNano()
		}
		hash := hashOf(c.Server, c.Resource)
		if had != nil && had.hash == hash {
			// Unless this session has said so.
			if had.session != s.session || had.expires != r.expires {
				b = t.add(b, &r, had)
				s.touched++
				had.session, had.time, had.updated, had.expires = s.session, r.time, r.updated, r.expires
			}
			continue
		}
		if had != nil {
			room += int64(had.size)
		}
		if grows := int64(len(c.Resource)); grows > room {
			full++
			b = s.forget(b, c.Name, now, had)
			continue
		} else {
			room -= grows + headSize
		}
		from := len(b)
		b = appendRecord(b, &r, c.Name, c.Server)
		s.hold(entry{
			name: c.Name, off: s.size + int64(from), size: int32(len(b) - from), session: s.session,
			hash: hash, time: now, updated: r.updated, expires: r.expires,
		})
	}
	return t.flush(b), full
}

// forget appends that there is nothing of a name any more, unless there was nothing.
func (s *section) forget(b []byte, name string, now int64, had *entry) []byte {
	if had == nil {
		return b
	}
	s.bury(had)
	return appendRecord(b, &record{kind: recordForget, time: now}, name, "")
}
