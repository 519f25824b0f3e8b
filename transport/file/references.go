package file

import (
	"crypto/sha256"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/regular"
	"github.com/xdswatch/xdswatch/internal/wire"
)

// secretURL is the type whose resources refer to files.
const secretURL = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// references are the files that the Secrets of a content refer to, as absolute paths.
type references struct {
	secrets []secret
	files   []string // of all Secrets, each once
	dirs    []string // in which any change may be one of theirs (watched_directory)
}

// secret is one that refers to files.
type secret struct {
	index int // in the response
	name  string
	files []string // sorted
}

// referencesOf reads the Secrets of a content. Those whose type is not known, or that do not
// parse, refer to nothing.
func referencesOf(c *content, types Resolver) (r references) {
	if c.typeURL != secretURL {
		return r
	}
	if c.list != nil {
		r.add(0, c.list.GetName(), c.list.GetResource().GetValue(), types)
		return r
	}
	resp, err := wire.ScanSotW(c.body)
	if err != nil {
		return r // which parse has refused
	}
	for i := range resp.Resources {
		e := &resp.Resources[i]
		r.add(i, string(e.Name), e.Payload, types)
	}
	slices.Sort(r.files)
	r.files = slices.Compact(r.files)
	return r
}

// add reads a Secret, which has its own name where the wrapper gives none.
func (r *references) add(index int, name string, payload []byte, types Resolver) {
	t, err := types.FindMessageByURL(secretURL)
	if err != nil {
		return
	}
	m := t.New()
	if err := (proto.UnmarshalOptions{Resolver: types}).Unmarshal(payload, m.Interface()); err != nil {
		return
	}
	if name == "" {
		name = textOf(m, "name")
	}
	var paths []string
	_ = protorange.Options{Resolver: types}.Range(m, func(at protopath.Values) error {
		if m, ok := at.Index(-1).Value.Interface().(protoreflect.Message); ok {
			switch m.Descriptor().FullName() {
			case "envoy.config.core.v3.DataSource":
				paths = appendPath(paths, textOf(m, "filename"))
			case "envoy.config.core.v3.WatchedDirectory":
				r.dirs = appendPath(r.dirs, textOf(m, "path"))
			}
		}
		return nil
	}, nil) // which ends with the message
	if len(paths) > 0 {
		slices.Sort(paths)
		r.secrets = append(r.secrets, secret{index, name, paths})
		r.files = append(r.files, paths...)
	}
}

// textOf is a field of a message that is a string; "" if it has none.
func textOf(m protoreflect.Message, field protoreflect.Name) string {
	if f := m.Descriptor().Fields().ByName(field); f != nil && f.Kind() == protoreflect.StringKind {
		return m.Get(f).String()
	}
	return ""
}

func appendPath(paths []string, path string) []string {
	if path == "" {
		return paths
	}
	if full, err := filepath.Abs(path); err == nil && !slices.Contains(paths, full) {
		return append(paths, full)
	}
	return paths
}

// reference is a file that Secrets refer to, as it was last looked at. One that cannot be
// read is what it was before.
type reference struct {
	sum  [sha256.Size]byte // of its content; zero if it was never read
	seen sighting
	read bool  // since it was seen so, and left alone
	err  error // why it could not be read, when that was tried last
	busy bool  // it is being written, and not for longer than that is waited for
}

// check looks at the file. It returns when to look again because the file is being
// written, or 0. At the first look it is read as it is.
func (r *reference) check(now time.Time, path string, config *Config) time.Duration {
	f, info, err := regular.Open(path)
	if err == nil {
		defer f.Close()
	}
	if err == nil && info.Size() > config.MaxSize {
		err = &SizeError{Limit: config.MaxSize}
	}
	if err != nil {
		r.seen, r.read, r.err = sighting{}, false, err
		return 0
	}
	before := r.seen.since
	wait := r.seen.settling(now, info, config.Settle)
	if r.read = r.read && r.seen.since.Equal(before); r.read || wait > 0 && r.sum != [sha256.Size]byte{} {
		return wait
	}
	hash := sha256.New()
	n, err := io.Copy(hash, io.LimitReader(f, config.MaxSize+1))
	if err == nil && n > config.MaxSize {
		err = &SizeError{Limit: config.MaxSize}
	}
	if r.err = err; err == nil {
		r.sum, r.read = [sha256.Size]byte(hash.Sum(nil)), wait == 0
	}
	return wait
}

// maxLooks is how often files are looked at again because one of them has changed: a certificate and its
// key may be replaced together between the looks at the one and the other.
const maxLooks = 3

// checkReferences looks at the files that the Secrets of the content refer to, until none of them changes
// meanwhile. With a change in one the content counts as new. It returns when to look again because one is
// being written, or 0.
func (s *source) checkReferences(now time.Time) (again time.Duration) {
	if s.content == nil {
		return 0
	}
	changed := false
	for range maxLooks {
		var more bool
		if again, more = s.lookAtReferences(now); !more {
			break
		}
		changed = true
	}
	if changed {
		s.contents++
	}
	return again
}

// lookAtReferences looks at each file once. It returns when to look again because one is being written, or 0, and
// whether a Secret has changed. A Secret stays what it was while one of its files is being written, so that a
// certificate and its key that are replaced together are told together.
func (s *source) lookAtReferences(now time.Time) (again time.Duration, changed bool) {
	live, states := map[string]*reference{}, map[string][sha256.Size]byte{}
	for _, path := range s.content.refers.files {
		r := s.references[path]
		if r == nil {
			r = &reference{}
		}
		wait := r.check(now, path, s.config)
		r.busy = wait > 0 && now.Sub(r.seen.restive) <= impatience*s.config.Settle
		again = sooner(again, wait)
		live[path] = r
	}
	s.references = live
	for _, of := range s.content.refers.secrets {
		was, known := s.states[of.key()]
		state := was
		if !known || !slices.ContainsFunc(of.files, func(path string) bool { return live[path].busy }) {
			state = s.hash(of.files)
		}
		states[of.key()] = state
		changed = changed || state != was
	}
	s.states = states
	return again, changed
}

// unread is the first file that a Secret refers to and that cannot be read; nil if there is none.
func (s *source) unread() error {
	if s.content == nil {
		return nil
	}
	for _, of := range s.content.refers.secrets {
		for _, path := range of.files {
			if err := s.references[path].err; err != nil {
				return &Error{Path: s.path, Err: &ReferenceError{Secret: of.name, Path: path, Err: reason(err)}}
			}
		}
	}
	return nil
}

// key names the files of a Secret.
func (of secret) key() string { return strings.Join(of.files, "\x00") }

// hash is of what files hold.
func (s *source) hash(files []string) [sha256.Size]byte {
	hash := sha256.New()
	for _, path := range files {
		hash.Write(s.references[path].sum[:])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// renew notes that a type is told the content, and gives the indices of the Secrets of which
// it was not told what their files hold now.
func (i *interest) renew(s *source) (renewed map[int]bool) {
	before := i.states
	i.states = map[string][sha256.Size]byte{}
	for _, of := range s.content.refers.secrets {
		state := s.states[of.key()]
		i.states[of.name] = state
		if was, told := before[of.name]; !told || was != state {
			if renewed == nil {
				renewed = map[int]bool{}
			}
			renewed[of.index] = true
		}
	}
	return renewed
}

// sooner is the shorter of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
