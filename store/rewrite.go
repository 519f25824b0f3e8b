package store

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// compact replaces the file by one without what is outdated, given what it holds: what this process has
// said is good comes last.
func (s *section) compact(from *window) error {
	_ = s.close()
	temp := filepath.Join(s.dir.path, tempPrefix+filepath.Base(s.path))
	_ = os.Remove(temp)
	f, err := s.dir.disk.create(temp)
	if err != nil {
		return err
	}
	w := rewriting{section: s, file: f, from: from, now: time.Now().UnixNano()}
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
	if err == nil {
		s.info, err = os.Lstat(s.path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return err
	}
	s.table, s.live, s.touched, s.size, s.session = w.table, w.live, 0, w.size, 1
	s.file, s.known, s.own, s.damaged, s.foreign, s.ahead = f, true, true, 0, false, false
	return nil
}

// rewriting is a file while it is written anew.
type rewriting struct {
	*section
	file  file
	from  *window
	out   []byte
	table table
	live  int64
	size  int64
	now   int64
}

func (w *rewriting) write() error {
	w.out = appendSection(w.out, describe(w.at))
	open := w.own
	if err := w.copy(func(e *entry) bool { return !open || e.session != w.section.session }, 0); err != nil {
		return err
	}
	w.out = appendRecord(w.out, &record{kind: recordBegin}, "", "")
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
	for held := range w.section.all {
		e := *held
		if !chosen(&e) {
			continue
		}
		e.time = w.goodAt(&e)
		body, _, ok := bodyAt(w.from.at(e.off, int64(e.size)))
		if !ok || r.parse(body) != nil {
			continue
		}
		// LKG-6: a clock was set back since, and what it said ahead of its time counts as said now.
		if late := e.time - w.now; late > 0 {
			if e.time = w.now; e.expires != 0 {
				e.expires -= late
			}
		}
		r.time, r.updated, r.expires = e.time, e.updated, e.expires
		from := len(w.out)
		w.out = appendRecord(w.out, &r, r.name, r.server)
		e.off, e.size, e.session = w.size+int64(from), int32(len(w.out)-from), session
		w.table.put(e)
		w.live += int64(e.size)
		if len(w.out) > slack {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return w.from.err
}

func (w *rewriting) flush() error {
	if _, err := w.file.Write(w.out); err != nil {
		return err
	}
	w.size += int64(len(w.out))
	w.out = w.out[:0]
	return nil
}
