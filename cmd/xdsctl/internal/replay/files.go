package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/recording"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/resources"
)

// Files are resources in a file or below a directory, which change.
type Files struct {
	path string
	look string // how the files looked when they were read
	held recording.State
}

// OpenFiles makes Files, which are read by [Files.Read].
func OpenFiles(path string) *Files { return &Files{path: path} }

// Read reads the files. With an error the state is that of before.
func (f *Files) Read() (recording.State, error) {
	f.look = looks(f.path)
	rs, err := resources.Read(f.path)
	if err != nil {
		return f.held, err
	}
	state, err := stateOf(rs, f.held)
	if err == nil {
		f.held = state
	}
	return f.held, err
}

// interval is how often files are looked at.
const interval = 100 * time.Millisecond

// Changed blocks until the files look another way than when they were read, and have looked so for
// an interval, so that they are not half written; or until ctx ends.
func (f *Files) Changed(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for last := f.look; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		now := looks(f.path)
		if now == last && now != f.look {
			return nil
		}
		last = now
	}
}

// looks is a text that changes with the files: names, sizes and times. Links are followed, so a
// change of what they lead to, such as a mounted ConfigMap's, is one.
func looks(path string) string {
	h := sha256.New()
	_ = resources.Tree(path, func(name string, info fs.FileInfo, _ error) error {
		if info != nil { // what is gone does not look
			fmt.Fprintln(h, name, info.Size(), info.ModTime().UnixNano(), info.IsDir())
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil))
}

// stateOf makes a state of resources. A type has the version that the files give its resources, if
// they agree in one and it is new, and else a hash; and so has a resource.
func stateOf(rs []resources.Resource, before recording.State) (recording.State, error) {
	state, versions := recording.State{}, map[string]map[string]bool{}
	for url := range before {
		state[url] = recording.Type{Resources: map[string]recording.Resource{}}
	}
	for _, r := range rs {
		if r.Name == "" {
			return nil, fmt.Errorf("%s: a resource of type %s has no name", r.File, r.Type)
		}
		t, ok := state[r.Type]
		if !ok {
			t.Resources = map[string]recording.Resource{}
			state[r.Type] = t
		}
		if _, twice := t.Resources[r.Name]; twice {
			return nil, fmt.Errorf("%s: a resource of type %s is given twice: %q", r.File, r.Type, r.Name)
		}
		payload, err := payloadOf(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %q cannot be encoded", r.File, r.Name)
		}
		next := recording.Resource{Version: r.Version, Content: &discoveryv3.Resource{Name: r.Name, Ttl: r.TTL, Resource: &anypb.Any{TypeUrl: r.Type, Value: payload}}}
		if versions[r.Type] == nil {
			versions[r.Type] = map[string]bool{}
		}
		versions[r.Type][r.Version] = true
		if old, ok := before[r.Type].Resources[r.Name]; r.Version == "" || ok && old.Version == r.Version && !old.Same(next) {
			next.Version = hash(payload)
		}
		t.Resources[r.Name] = next
	}
	for url, t := range state {
		t.Version = versionOf(t, slices.Sorted(maps.Keys(versions[url])), before[url])
		state[url] = t
	}
	return state, nil
}

func versionOf(t recording.Type, given []string, before recording.Type) string {
	if same(t, before) {
		return before.Version
	}
	if len(given) == 1 && given[0] != "" && given[0] != before.Version {
		return given[0]
	}
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(t.Resources)) {
		all = fmt.Appendf(all, "%q %x\n", name, sha256.Sum256(t.Resources[name].Content.GetResource().GetValue()))
	}
	return hash(all)
}

func same(a, b recording.Type) bool {
	return b.Version != "" && maps.EqualFunc(a.Resources, b.Resources, recording.Resource.Same)
}

// hash is a version made of content.
func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:6])
}

func payloadOf(r resources.Resource) ([]byte, error) {
	if r.Message == nil {
		return r.Raw, nil
	}
	return proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(r.Message)
}

// Source is what is replayed: a recording, or files.
type Source struct {
	Moments []recording.Moment // of a recording; nil of files
	Files   *Files
	Faults  []error // of what a recording holds and cannot be read
}

// Open opens what is to be replayed.
func Open(path string) (Source, error) {
	moments, faults, err := recording.Read(path)
	if errors.Is(err, recording.ErrNotRecording) {
		return Source{Files: OpenFiles(path)}, nil
	}
	return Source{Moments: moments, Faults: faults}, err
}
