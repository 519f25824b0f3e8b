package store

import (
	"cmp"
	"errors"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/regular"
)

// section is one file. Its fields are guarded by the lock of the directory.
type section struct {
	dir  *Directory
	at   client.StoreSection
	path string

	// What the file holds, as it was last read and as this process has changed it since.
	known   bool
	info    os.FileInfo // of the file as it was read, or of the one that is open; nil if there was none
	table               // what is in it
	size    int64       // of the file
	live    int64       // bytes of records that are not outdated
	touched int64       // entries that touches speak of, each as often as one does
	damaged int         // records
	inside  bool        // some before the last that is not damaged
	end     int64       // of that one
	foreign bool
	ahead   bool   // something was good at a time that is still to come
	server  string // that was read last: most are the same
	names   strings.Builder

	file    file   // open for writing; nil unless it is
	session uint32 // the newest
	own     bool   // that is of this process
	alive   int64  // when it last said that all of the newest is good, in Unix nanoseconds
	broken  bool   // the last write failed

	rewrites bool // a test's: the file is written anew when it is opened
}

const (
	tempPrefix = ".new-"
	// slack is how much of a file may be outdated, beside as much as is not.
	slack = 1 << 20
	// namesSize is how many bytes of names are allocated at once.
	namesSize = 4 << 10
)

// content opens the file, as an empty one if there is none, of which at least so many bytes are read at once.
func (s *section) content(ahead int64) (w *window, info os.FileInfo, err error) {
	before, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &window{}, nil, nil
	case err != nil:
		return nil, nil, err
	case !before.Mode().IsRegular():
		return nil, nil, &ForeignError{s.path}
	}
	f, info, err := regular.Open(s.path) // which may be something else by now
	if err != nil {
		return nil, nil, err
	}
	w = &window{file: f, size: info.Size(), ahead: ahead}
	if head := w.at(0, headSize); len(head) == headSize && !isHead(head) {
		w.size = headSize // LKG-7: it is foreign, however large it is
	}
	if most := s.dir.options.MaxSize; most > 0 {
		w.size = min(w.size, 4*most+4*slack) // the rest is damage, as what is cut is
	}
	// H-10: a file may be extended to any size.
	if w.size, err = extent(f, w.size); err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return w, info, nil
}

// current says whether it is known what the file holds.
func (s *section) current() bool {
	if s.file != nil {
		return true
	}
	info, err := os.Lstat(s.path)
	return s.known && err == nil && s.info != nil &&
		os.SameFile(info, s.info) && info.Size() == s.info.Size() && info.ModTime().Equal(s.info.ModTime())
}

// read learns what the file holds, unless that is known.
func (s *section) read() error {
	if s.current() {
		return nil
	}
	w, info, err := s.content(partSize)
	if err != nil {
		return err
	}
	defer w.close()
	return s.learn(w, info)
}

// learn takes in what a file holds.
func (s *section) learn(w *window, info os.FileInfo) error {
	s.known, s.info = false, info
	s.table, s.live, s.touched, s.damaged, s.foreign, s.ahead, s.session, s.own = table{}, 0, 0, 0, false, false, 0, false
	alive := map[uint32]int64{} // by session
	s.names.Reset()
	first := true
	var r record
	s.damaged, s.inside, s.end = w.scan(func(off, size int64, body []byte) error {
		if first {
			first = false
			s.foreign = recordKind(body[0]) != recordSection || string(body[1:]) != string(describe(s.at))
			return nil
		}
		if s.foreign || recordKind(body[0]) == recordSection {
			return nil
		}
		if err := r.parse(body); err != nil {
			return err
		}
		return s.take(&r, off, size, alive)
	})
	if s.size = w.size; w.err != nil {
		return w.err
	}
	s.known = true
	// LKG-7: a foreign file holds nothing.
	if s.foreign = s.foreign || first && info != nil; s.foreign {
		s.table, s.live = table{}, 0
	}
	now, oldest := time.Now(), int64(0)
	if age := s.dir.options.MaxAge; age > 0 {
		oldest = now.Add(-age).UnixNano()
	}
	for e := range s.all {
		s.ahead = s.ahead || max(e.time, alive[e.session]) > now.UnixNano()
		if e.time = max(e.time, alive[e.session]); e.time < oldest {
			s.bury(e) // LKG-6: it is too old
		}
	}
	s.alive = alive[s.session]
	return nil
}

// young are those entries that were not good too long ago. Others stay in the table: what this process holds is good again
// with its next word, as after a sleep of the machine.
func (s *section) young(of iter.Seq[*entry]) iter.Seq[*entry] {
	age := s.dir.options.MaxAge
	if age <= 0 {
		return of
	}
	// LKG-6: nothing older than the maximum age.
	oldest := time.Now().Add(-age).UnixNano()
	return func(yield func(*entry) bool) {
		for e := range of {
			if s.goodAt(e) >= oldest && !yield(e) {
				return
			}
		}
	}
}

// goodAt is when an entry was last good.
func (s *section) goodAt(e *entry) int64 {
	if s.own && e.session == s.session {
		return max(e.time, s.alive)
	}
	return e.time
}

// take takes in a record.
func (s *section) take(r *record, off, size int64, alive map[uint32]int64) error {
	switch r.kind {
	case recordPut:
		s.hold(entry{
			name: s.text(r.name), off: off, size: int32(size), session: s.session,
			hash: hashOf(r.server, r.resource), time: r.time, updated: r.updated, expires: r.expires,
		})
	case recordForget:
		s.bury(s.find(string(r.name)))
	case recordTouch:
		return s.touch(r)
	case recordBegin:
		s.session++
	case recordAlive:
		alive[s.session] = max(alive[s.session], r.time)
	default:
		return errRecord
	}
	return nil
}

// text makes a text of a name. Many are in one allocation, which those that are used keep.
func (s *section) text(name []byte) string {
	if s.names.Cap()-s.names.Len() < len(name) {
		s.names.Reset()
		s.names.Grow(max(namesSize, len(name)))
	}
	from := s.names.Len()
	s.names.Write(name)
	return s.names.String()[from:]
}

// hold takes in an entry, in place of the one of its name.
func (s *section) hold(e entry) {
	s.bury(s.put(e))
	s.live += int64(e.size)
}

// bury has an entry be outdated; nil is none.
func (s *section) bury(e *entry) {
	if e != nil {
		s.live -= int64(e.size)
		e.size = 0
	}
}

// fault is what is wrong with the file that was read.
func (s *section) fault() error {
	switch {
	case s.foreign:
		return &ForeignError{s.path}
	case s.damaged > 0:
		return &DamageError{s.path, s.damaged}
	}
	return nil
}

// few is how many names are read one by one.
const few = 64

func (s *section) load(names []string, yield func(client.StoredResource)) error {
	ahead := int64(partSize)
	if names != nil && len(names) <= few {
		if err := s.read(); err != nil {
			return err
		}
		ahead = 0
	}
	w, info, err := s.content(ahead)
	if err != nil {
		return err
	}
	defer w.close()
	w.keep, w.parts = true, []part{w.part}
	if !s.current() {
		if err := s.learn(w, info); err != nil {
			return err
		}
	}
	for e := range s.young(s.of(names)) {
		s.yield(e, w.at(e.off, int64(e.size)), yield)
	}
	return cmp.Or(w.err, s.fault())
}

// yield hands out an entry, given the bytes of its record.
func (s *section) yield(e *entry, b []byte, yield func(client.StoredResource)) {
	var r record
	body, _, ok := bodyAt(b)
	if !ok || r.parse(body) != nil || string(r.name) != e.name {
		return // the file was replaced meanwhile
	}
	if string(r.server) != s.server {
		s.server = string(r.server)
	}
	out := client.StoredResource{Name: e.name, Resource: r.resource, Server: s.server, Updated: time.Unix(0, e.updated)}
	if e.expires != 0 {
		// LKG-6: a clock that was set back since it was good prolongs nothing.
		out.Expires = time.Unix(0, e.expires-max(0, e.time-time.Now().UnixNano()))
	}
	yield(out)
}
