// Package store keeps last known good resources in a directory, so that a program can start while
// none of its management servers can be reached:
//
//	kept := store.Dir("/var/lib/myproxy/xds", store.Options{})
//	c, err := client.New(client.Config{Bootstrap: boot, Store: kept})
//
// What the client accepts is on disk within some seconds. After a start without a server, watches
// get it as stale ([client.Event].Stale), until a server speaks of it. Secrets, and resources that
// hold keys, are never written; see [client.Config].Store.
//
// There is one file for each type, authority and scope, which only its owner can read. A file is a
// log of records with checksums, to which changes are appended, and which is replaced as a whole, by
// renaming, when it is new or holds more that is outdated than is not. A record that was damaged,
// or written in part when the process was killed, is passed over and reported; what the file held of
// its name before may then be loaded in its place. A file of another program is left out, and
// replaced when there is something to keep. A file that somebody removes while a process writes to it is
// made again by the next save, with all that it held.
//
// One process at a time writes to a directory. Another one, such as the next instance of the program
// in a rolling restart, can load from it, and saves when the first is gone.
package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/xdswatch/xdswatch/client"
)

// Options change what a directory keeps; the zero value is good for most programs.
type Options struct {
	// MaxAge is how long a resource is kept after a process last held it as good. 0 means 7 days;
	// negative no bound. What a clock that was ahead has kept is as old as the next save by a right one.
	MaxAge time.Duration
	// MaxSize is how many bytes of resources are kept, of all files together. What exceeds it is not
	// saved, and what was saved of its name is removed; [Directory.Save] says so. Files may take
	// twice as much, and a mebibyte each, since they hold what is outdated too; while a file is replaced,
	// the new one stands beside it. 0 means 1 GiB; negative no bound.
	MaxSize int64
}

const (
	defaultMaxAge  = 7 * 24 * time.Hour
	defaultMaxSize = 1 << 30
)

// Directory is a [client.Store] in a directory. Its methods are safe for concurrent use.
type Directory struct {
	path    string
	options Options
	disk    disk

	mu       sync.Mutex
	lock     *os.File // held; nil unless this process writes
	sections map[client.StoreSection]*section
	buffer   []byte // for records that are written
	others   int64  // bytes of files of sections that are not open for writing
}

var _ client.Store = (*Directory)(nil)

// Dir returns a store in a directory, which is made, for its owner alone, when there is something to
// keep. It does no I/O: what is wrong with the directory is the error of [Directory.Load] and
// [Directory.Save], which the client logs, and never keeps a program from starting.
func Dir(path string, o Options) *Directory {
	if o.MaxAge == 0 {
		o.MaxAge = defaultMaxAge
	}
	if o.MaxSize == 0 {
		o.MaxSize = defaultMaxSize
	}
	return &Directory{path: path, options: o, disk: osDisk{}, sections: map[client.StoreSection]*section{}}
}

// ErrInUse says that another process writes to the directory.
var ErrInUse = errors.New("store: another process writes to the directory")

// DamageError says that records of a file were passed over.
type DamageError struct {
	File    string
	Records int // at least so many
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("store: %s: damaged records were passed over: %d", e.File, e.Records)
}

// ForeignError says that a file is not one of the section that its name stands for.
type ForeignError struct{ File string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("store: %s is no file of this store, and is passed over", e.File)
}

// FullError says that resources are not kept since there is no room.
type FullError struct {
	Resources int
	MaxSize   int64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("store: %d resources are not kept; with them there would be more than %d bytes (Options.MaxSize)", e.Resources, e.MaxSize)
}

// Load implements [client.Store]. It yields what is whole even if the error is a [*DamageError].
func (d *Directory) Load(at client.StoreSection, names []string, yield func(client.StoredResource)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.section(at).load(names, yield)
}

// Names implements [client.Store].
func (d *Directory) Names(at client.StoreSection) (names []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.section(at)
	if err = s.read(); err != nil {
		return nil, err
	}
	names = make([]string, 0, s.named)
	for e := range s.young(s.all) {
		names = append(names, e.name)
	}
	return names, nil
}

// Save implements [client.Store]. When it has returned nil, the changes are on disk. The errors are
// a [*FullError]; though all is saved, a [*DamageError] or [*ForeignError] of what the file held before, or one of the
// file system if the file could not be replaced; and [client.ErrNotSaved] with the reason, [ErrInUse] or one of the file
// system.
func (d *Directory) Save(at client.StoreSection, changes []client.StoredResource) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.acquire(); err != nil {
		return notSaved(err)
	}
	return d.section(at).save(changes)
}

// Close lets another process write to the directory, as the end of the process does. Later calls of
// Save open it again. Close the client before it.
func (d *Directory) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.sections {
		errs = append(errs, s.close())
	}
	clear(d.sections)
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
		d.lock = nil
	}
	return errors.Join(errs...)
}

func (d *Directory) section(at client.StoreSection) *section {
	s := d.sections[at]
	if s == nil {
		s = &section{dir: d, at: at, path: filepath.Join(d.path, fileName(at))}
		d.sections[at] = s
	}
	return s
}

// suffix is that of the files of a store.
const suffix = ".lkg"

// fileName is readable as to the type, and unique by its hash.
func fileName(at client.StoreSection) string {
	short := at.Type[strings.LastIndexAny(at.Type, "./")+1:]
	short = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, short)
	sum := sha256.Sum256(describe(at))
	return short[:min(len(short), 40)] + "-" + hex.EncodeToString(sum[:12]) + suffix
}

// describe is what a file says of its section.
func describe(at client.StoreSection) []byte {
	b, err := json.Marshal(at)
	if err != nil {
		panic(err) // texts alone
	}
	return b
}

// acquire makes this process the one that writes, and clears away what nobody needs.
func (d *Directory) acquire() error {
	path := filepath.Join(d.path, "lock")
	if d.lock != nil {
		if isAt(d.lock, path) {
			return nil
		}
		_ = d.lock.Close() // somebody replaced the directory
		d.lock = nil
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return ErrInUse
	}
	d.lock = f
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	d.others = 0
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		path, kept, age := filepath.Join(d.path, e.Name()), strings.HasSuffix(e.Name(), suffix), time.Since(info.ModTime())
		switch {
		// LKG-7: what a killed process left behind.
		case kept && strings.HasPrefix(e.Name(), tempPrefix), kept && d.options.MaxAge > 0 && age > d.options.MaxAge:
			_ = os.Remove(path)
		case kept && !d.writes(e.Name()):
			d.others += info.Size()
			if age < 0 {
				_ = os.Chtimes(path, time.Time{}, time.Now()) // LKG-6: a clock that was ahead prolongs nothing
			}
		}
	}
	return nil
}

// isAt says whether a file is the one at a path.
func isAt(f *os.File, path string) bool {
	own, err := f.Stat()
	here, hereErr := os.Lstat(path)
	return err == nil && hereErr == nil && os.SameFile(own, here)
}

// writes says whether a file of that name is open for writing, or was until somebody replaced it.
func (d *Directory) writes(name string) bool {
	for _, s := range d.sections {
		if s.file != nil && filepath.Base(s.path) == name {
			return true
		}
	}
	return false
}

// size is how many bytes are kept, about.
func (d *Directory) size() int64 {
	n := d.others
	for _, s := range d.sections {
		if s.file != nil {
			n += s.live
		}
	}
	return n
}
