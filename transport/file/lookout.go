package file

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
)

// lookout listens in the directories on which the meaning of paths depends. nil is one that
// hears nothing.
type lookout struct {
	watcher *fsnotify.Watcher
	// stirred gets a value when something may have changed since the last one.
	stirred chan struct{}
	done    chan struct{} // closed when nothing is listened to any more

	dirs    map[string]fs.FileInfo // that are listened in; owned by arm
	matters atomic.Pointer[matters]
}

// matters is what has to be heard of.
type matters struct {
	names map[string]bool // of files, with their directories or without
	dirs  map[string]bool // in which everything matters
}

func (m *matters) has(ev fsnotify.Event) bool {
	return m.names[ev.Name] || m.names[filepath.Base(ev.Name)] || m.dirs[filepath.Dir(ev.Name)]
}

// newLookout begins to listen. With an error there may be a lookout all the same, which
// hears of less.
func newLookout(paths, watched []string) (*lookout, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("no file system notifications: %w", err)
	}
	l := &lookout{
		watcher: w, stirred: make(chan struct{}, 1), done: make(chan struct{}), dirs: map[string]fs.FileInfo{},
	}
	err = l.arm(paths, watched)
	go l.listen()
	return l, err
}

// listen takes what the watcher has, always, since it holds a lock while it tells some
// errors. It ends when the watcher is closed.
func (l *lookout) listen() {
	defer close(l.done)
	events, errs := l.watcher.Events, l.watcher.Errors
	for events != nil || errs != nil {
		select {
		case ev, ok := <-events:
			switch {
			case !ok:
				events = nil
			case l.matters.Load().has(ev):
				l.stir()
			}
		case _, ok := <-errs:
			if !ok {
				errs = nil
				continue
			}
			l.stir() // events may have been lost
		}
	}
}

func (l *lookout) stir() {
	select {
	case l.stirred <- struct{}{}:
	default:
	}
}

// arm follows the paths anew and listens where they lead through now, and in directories in
// which everything matters. It has to be called before the files are looked at, lest a change
// falls between. The error says which directory could not be listened in; the others are.
func (l *lookout) arm(paths, watched []string) error {
	if l == nil {
		return nil
	}
	m := &matters{names: map[string]bool{}, dirs: map[string]bool{}}
	dirs := map[string]bool{}
	for _, path := range paths {
		// FILE-1: a move into place is heard of, through links too.
		for _, p := range trace(path) {
			m.names[p.name], m.names[p.dir], dirs[p.dir] = true, true, true
		}
	}
	for _, dir := range watched {
		m.dirs[dir], m.names[dir], dirs[dir] = true, true, true
	}
	l.matters.Store(m)
	for dir := range l.dirs {
		if !dirs[dir] {
			l.leave(dir)
		}
	}
	var fault error
	live := l.watcher.WatchList()
	slices.Sort(live)
	for dir := range dirs {
		_, lives := slices.BinarySearch(live, dir)
		if err := l.join(dir, lives); err != nil {
			fault = fmt.Errorf("directory %q cannot be watched: %w", dir, reason(err))
		}
	}
	return fault
}

// join listens in a directory, anew if another has its name by now.
func (l *lookout) join(dir string, live bool) error {
	info, err := os.Stat(dir)
	if err != nil {
		l.leave(dir)
		return err
	}
	if old := l.dirs[dir]; live && old != nil && os.SameFile(old, info) {
		return nil
	}
	l.leave(dir)
	if err := l.watcher.Add(dir); err != nil {
		return err
	}
	l.dirs[dir] = info
	return nil
}

func (l *lookout) leave(dir string) {
	if l.dirs[dir] != nil {
		_ = l.watcher.Remove(dir) // it may be gone already
		delete(l.dirs, dir)
	}
}

// changes is where the lookout tells; nil for none.
func (l *lookout) changes() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.stirred
}

func (l *lookout) close() {
	if l != nil {
		_ = l.watcher.Close() // nobody is left to hear of it
		<-l.done
	}
}

// place is a name in a directory whose change gives a path another meaning.
type place struct{ dir, name string }

// maxLinks is how many symbolic links are followed, as on Linux.
const maxLinks = 40

// trace follows an absolute path as the system does, and tells the places on which its
// meaning depends: each symbolic link, the file itself, or the first thing that is missing.
func trace(path string) (places []place) {
	const separator = string(filepath.Separator)
	root := filepath.VolumeName(path) + separator
	parts := func(p string) []string {
		return strings.Split(filepath.Clean(p[len(filepath.VolumeName(p)):]), separator)
	}
	dir, rest, links := root, parts(path), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir)
			continue
		}
		full := filepath.Join(dir, name)
		info, err := os.Lstat(full)
		if err == nil && info.IsDir() && len(rest) > 0 {
			dir = full
			continue
		}
		places = append(places, place{dir, name})
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return places
		}
		target, err := os.Readlink(full)
		if links++; err != nil || links > maxLinks {
			return places
		}
		if filepath.IsAbs(target) {
			dir = filepath.VolumeName(target) + separator
		}
		rest = append(parts(target), rest...)
	}
	return places
}
