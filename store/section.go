package store

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// section is one file. Its fields are guarded by the lock of the directory.
type section struct {
	dir  *Directory
	at   client.StoreSection
	path string

	// What the file holds, as it was last read and as this process has changed it since.
	known   bool
	info    os.FileInfo // of the file as it was read; nil if there was none
	list    []entry     // in the order of the file
	index   map[string]int
	size    int64 // of the file
	live    int64 // bytes of records that are not outdated
	damaged int   // records
	foreign bool

	file    file   // open for writing; nil unless it is
	session uint32 // the newest
	own     bool   // that is of this process
	broken  bool   // the last write failed

	rewrites bool // a test's: the file is written anew when it is opened
}

// entry is a resource in a file.
type entry struct {
	name    string
	off     int64
	size    int32
	dead    bool
	session uint32 // in which it was put or touched
	hash    uint64 // of resource and server; 0 unless the file is open for writing
	time    int64
	updated int64
	expires int64
}

var seed = maphash.MakeSeed()

func hashOf(server, resource []byte) uint64 {
	return maphash.Bytes(seed, resource)*31 + maphash.Bytes(seed, server)
}

const (
	tempPrefix = ".new-"
	// slack is how much of a file may be outdated, beside as much as is not.
	slack = 1 << 20
)

// content reads the file; nil if there is none.
func (s *section) content() (b []byte, info os.FileInfo, err error) {
	before, err := os.Lstat(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case !before.Mode().IsRegular():
		return nil, nil, &ForeignError{s.path}
	}
	f, err := os.Open(s.path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if most := s.dir.options.MaxSize; most > 0 && info.Size() > 4*most+4*slack {
		return nil, nil, fmt.Errorf("store: %s has %d bytes, more than a file of this store", s.path, info.Size())
	}
	b = make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it is being written
	}
	return b[:n], info, err
}

// read learns what the file holds, unless that is known.
func (s *section) read() error {
	if s.file != nil {
		return nil
	}
	if info, err := os.Lstat(s.path); s.known && err == nil && s.info != nil &&
		os.SameFile(info, s.info) && info.Size() == s.info.Size() && info.ModTime().Equal(s.info.ModTime()) {
		return nil
	}
	b, info, err := s.content()
	if err != nil {
		return err
	}
	s.info = info
	s.learn(b, false)
	return nil
}

// learn takes in what a file holds.
func (s *section) learn(b []byte, hashes bool) {
	s.known, s.size = true, int64(len(b))
	s.list, s.index, s.live, s.damaged, s.foreign, s.session, s.own = nil, map[string]int{}, 0, 0, false, 0, false
	alive := map[uint32]int64{} // by session
	first := true
	var r record
	s.damaged = scan(b, func(off, size int, body []byte) error {
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
		return s.take(&r, off, size, hashes, alive)
	})
	// LKG-7: a foreign file holds nothing.
	if s.foreign = s.foreign || first && len(b) > 0; s.foreign {
		s.list, s.index, s.live = nil, map[string]int{}, 0
	}
	oldest := int64(0)
	if age := s.dir.options.MaxAge; age > 0 {
		oldest = time.Now().Add(-age).UnixNano()
	}
	for i := range s.list {
		e := &s.list[i]
		if e.time = max(e.time, alive[e.session]); !e.dead && e.time < oldest {
			s.bury(i) // LKG-6: it is too old
		}
	}
}

// take takes in a record.
func (s *section) take(r *record, off, size int, hashes bool, alive map[uint32]int64) error {
	switch r.kind {
	case recordPut:
		e := entry{
			name: string(r.name), off: int64(off), size: int32(size), session: s.session,
			time: r.time, updated: r.updated, expires: r.expires,
		}
		if hashes {
			e.hash = hashOf(r.server, r.resource)
		}
		s.put(e)
	case recordForget:
		if i, ok := s.index[string(r.name)]; ok {
			s.bury(i)
		}
	case recordTouch:
		if i, ok := s.index[string(r.name)]; ok {
			e := &s.list[i]
			e.session, e.time, e.updated, e.expires = s.session, r.time, r.updated, r.expires
		}
	case recordBegin:
		s.session++
	case recordAlive:
		alive[s.session] = max(alive[s.session], r.time)
	default:
		return errRecord
	}
	return nil
}

func (s *section) put(e entry) {
	if i, ok := s.index[e.name]; ok {
		s.bury(i)
	}
	s.index[e.name] = len(s.list)
	s.list = append(s.list, e)
	s.live += int64(e.size)
}

func (s *section) bury(i int) {
	e := &s.list[i]
	e.dead = true
	s.live -= int64(e.size)
	delete(s.index, e.name)
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
	if names != nil && len(names) <= few {
		if err := s.read(); err != nil {
			return err
		}
		return s.loadFew(names, yield)
	}
	b, info, err := s.content()
	if err != nil {
		return err
	}
	if s.file == nil {
		s.info = info
		s.learn(b, false)
	}
	for i := range s.list {
		if e := &s.list[i]; !e.dead && e.off+int64(e.size) <= int64(len(b)) {
			s.yield(e, b[e.off:e.off+int64(e.size)], yield)
		}
	}
	return s.fault()
}

func (s *section) loadFew(names []string, yield func(client.StoredResource)) error {
	var f *os.File
	for _, name := range names {
		i, ok := s.index[name]
		if !ok {
			continue
		}
		if f == nil {
			var err error
			if f, err = os.Open(s.path); err != nil {
				return err
			}
			defer f.Close()
		}
		e := &s.list[i]
		b := make([]byte, e.size)
		if _, err := f.ReadAt(b, e.off); err != nil {
			return err
		}
		s.yield(e, b, yield)
	}
	return s.fault()
}

// yield hands out an entry, given the bytes of its record.
func (s *section) yield(e *entry, b []byte, yield func(client.StoredResource)) {
	var r record
	body, _, ok := bodyAt(b)
	if !ok || r.parse(body) != nil || string(r.name) != e.name {
		return // the file was replaced meanwhile
	}
	out := client.StoredResource{Name: e.name, Resource: r.resource, Server: string(r.server), Updated: time.Unix(0, e.updated)}
	if e.expires != 0 {
		out.Expires = time.Unix(0, e.expires)
	}
	yield(out)
}

// open makes the file ready for writing: as it is if it is whole, else anew.
func (s *section) open() (fault, err error) {
	if s.file != nil {
		return nil, nil
	}
	b, info, err := s.content()
	if err != nil {
		return nil, err
	}
	s.info = info
	s.learn(b, true)
	if fault = s.fault(); s.broken { // by this process, whose session goes on
		fault, s.own = nil, s.session > 0 && !s.foreign
	}
	if info != nil {
		s.dir.others -= info.Size()
	}
	if s.size == 0 || s.foreign || s.damaged > 0 || s.wasteful() || s.rewrites {
		err = s.compact(b)
	} else {
		if s.file, err = s.dir.disk.extend(s.path); err == nil && !s.own {
			s.session, s.own = s.session+1, true
			err = s.append(appendRecord(nil, (&record{kind: recordBegin}).append))
		}
	}
	if err != nil {
		_ = s.fail()
	}
	return fault, err
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

func (s *section) wasteful() bool { return s.size > 2*s.live+slack }

// append writes at the end of the file.
func (s *section) append(b []byte) error {
	if _, err := s.file.Write(b); err != nil {
		return err
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
	s.broken = false
	if s.wasteful() {
		whole, _, err := s.content()
		if err == nil {
			err = s.compact(whole)
		}
		if err != nil {
			return errors.Join(fault, err, s.fail()) // the changes are there
		}
	}
	if full > 0 {
		return errors.Join(fault, &FullError{full, s.dir.options.MaxSize})
	}
	return fault
}

func notSaved(err error) error { return fmt.Errorf("%w: %w", client.ErrNotSaved, err) }

// encode makes the records of changes, and counts those for which there is no room.
func (s *section) encode(changes []client.StoredResource) (b []byte, full int) {
	now := time.Now().UnixNano()
	if len(changes) == 0 {
		return appendRecord(nil, (&record{kind: recordAlive, time: now}).append), 0
	}
	room := int64(1)
	if s.dir.options.MaxSize > 0 {
		room = s.dir.options.MaxSize - s.dir.size()
	}
	for i := range changes {
		c := &changes[i]
		at, had := s.index[c.Name]
		r := record{kind: recordForget, time: now, name: []byte(c.Name)}
		if c.Resource != nil {
			r.kind, r.server, r.resource, r.updated = recordPut, []byte(c.Server), c.Resource, c.Updated.UnixNano()
			if !c.Expires.IsZero() {
				r.expires = c.Expires.UnixNano()
			}
		}
		if r.kind == recordPut && had && s.list[at].hash == hashOf(r.server, r.resource) {
			e := &s.list[at]
			if e.session == s.session && e.expires == r.expires {
				continue
			}
			e.session, e.time, e.updated, e.expires = s.session, now, r.updated, r.expires
			r.kind, r.server, r.resource = recordTouch, nil, nil
			b = appendRecord(b, r.append)
			continue
		}
		if grows := int64(len(c.Resource)); r.kind == recordPut && s.dir.options.MaxSize > 0 {
			if had {
				room += int64(s.list[at].size)
			}
			if grows > room {
				full++
				r = record{kind: recordForget, time: now, name: r.name}
			} else {
				room -= grows + headSize
			}
		}
		if r.kind == recordForget && !had {
			continue
		}
		from := len(b)
		b = appendRecord(b, r.append)
		if r.kind == recordForget {
			s.bury(at)
			continue
		}
		s.put(entry{
			name: c.Name, off: s.size + int64(from), size: int32(len(b) - from), session: s.session,
			hash: hashOf(r.server, r.resource), time: now, updated: r.updated, expires: r.expires,
		})
	}
	return b, full
}

// compact replaces the file by one without what is outdated, given its content: what this process has
// said is good comes last.
func (s *section) compact(b []byte) error {
	_ = s.close()
	temp := filepath.Join(s.dir.path, tempPrefix+filepath.Base(s.path))
	_ = os.Remove(temp)
	f, err := s.dir.disk.create(temp)
	if err != nil {
		return err
	}
	w := rewriting{section: s, file: f, from: b}
	if err = w.write(); err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	// LKG-7: the new file is whole and on disk before it has the name.
	if err == nil {
		err = s.dir.disk.rename(temp, s.path)
	}
	if err == nil {
		err = s.dir.disk.syncDir(s.dir.path)
	}
	if err == nil {
		f, err = s.dir.disk.extend(s.path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	s.list, s.index, s.live, s.size, s.session = w.list, w.index, w.live, w.size, 1
	s.file, s.known, s.own, s.damaged, s.foreign = f, true, true, 0, false
	return nil
}

// rewriting is a file while it is written anew.
type rewriting struct {
	*section
	file  file
	from  []byte
	out   []byte
	list  []entry
	index map[string]int
	live  int64
	size  int64
}

func (w *rewriting) write() error {
	w.index = make(map[string]int, len(w.section.index))
	w.out = appendRecord(w.out, func(b []byte) []byte {
		return append(append(b, byte(recordSection)), describe(w.at)...)
	})
	open := w.own
	if err := w.copy(func(e *entry) bool { return !open || e.session != w.section.session }, 0); err != nil {
		return err
	}
	w.out = appendRecord(w.out, (&record{kind: recordBegin}).append)
	if open {
		if err := w.copy(func(e *entry) bool { return e.session == w.section.session }, 1); err != nil {
			return err
		}
	}
	return w.flush()
}

// copy writes those entries that are chosen.
func (w *rewriting) copy(chosen func(*entry) bool, session uint32) error {
	var r record
	for i := range w.section.list {
		e := w.section.list[i]
		if e.dead || !chosen(&e) || e.off+int64(e.size) > int64(len(w.from)) {
			continue
		}
		body, _, ok := bodyAt(w.from[e.off : e.off+int64(e.size)])
		if !ok || r.parse(body) != nil {
			continue
		}
		r.time, r.updated, r.expires = e.time, e.updated, e.expires
		from := len(w.out)
		w.out = appendRecord(w.out, r.append)
		e.off, e.size, e.session = w.size+int64(from), int32(len(w.out)-from), session
		w.index[e.name] = len(w.list)
		w.list = append(w.list, e)
		w.live += int64(e.size)
		if len(w.out) > slack {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *rewriting) flush() error {
	if _, err := w.file.Write(w.out); err != nil {
		return err
	}
	w.size += int64(len(w.out))
	w.out = w.out[:0]
	return nil
}
