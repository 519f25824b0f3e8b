// Package file makes a file a carrier of discovery responses: it is read when a stream is
// opened and whenever it changed, and what it holds is handed on as a response to each type
// that was asked for (xDS protocol, "Filesystem subscriptions";
// envoy.config.core.v3.PathConfigSource).
//
// A file holds one DiscoveryResponse, or one Resource with a list collection (xRFC TP1,
// "file:///…" locators), as binary, text, JSON or YAML. The suffix of its path says which:
// .pb; .pb_text, .txtpb, .textproto, .pbtxt or .prototext; .json; .yaml or .yml. With any
// other suffix the content decides. The binary form is passed on as it is; of JSON and YAML
// only the entries that changed are converted again. A list collection in words may have any
// number of entries, also where Envoy's message has room for one.
//
// # Changes
//
// The content decides, by its hash. Notifications of the file system say when to look:
// those of the directories in which the path, or a symbolic link on its way, may be given
// another meaning, and of [bootstrap.File.WatchedDirectory]. Beside them the file is
// looked at every few seconds. A file that was moved into its place is read at once if it
// was not written to just before; one that is written in place is read when it was left
// alone for a moment ([Config.Settle]). That moment cannot know of a writer that is slow,
// so the safe way is to write another file and to move it.
//
// The files that a Secret refers to, such as its certificate and key, are looked at in the
// same ways, and so are its watched directories. When the content of one has changed the
// Secret is handed on as one that is new ([transport.Frame.Renewed]), so that its watches
// hear of it again. One that cannot be read counts as what it was before, and is told to
// [Config.Report] and [Config.Logger] ([ReferenceError]), whether or not the Secret is asked
// for. Of which files Secrets speak is only known where their type is linked in, or is among
// [Config.Types].
//
// # Bad files
//
// A file is used whole or not at all. One that is empty, too large, malformed, of an unknown
// type, away, unreadable or not a regular one leaves what was read before in force. The
// stream stays: the trouble is told to [Config.Report] and [Config.Logger] once, and to
// watches as an error of the names that they ask for, the wildcard's "*" among them, which
// ends with the next good content. An empty file is always bad, lest one that is being
// truncated and written deletes everything; `{}` says that there is nothing.
//
// A file may have the type URLs of version 2 of the API where
// [bootstrap.ManagementServer.TransportV2] says so.
//
// A resource that is refused is the client's affair, as with any response: the others of the
// file are used. There is nobody to hear of it but Report and Logger.
package file

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/internal/apiv2"
	"github.com/xdswatch/xdswatch/internal/regular"
	"github.com/xdswatch/xdswatch/transport"
)

// Defaults.
const (
	defaultRecheck = 5 * time.Second
	defaultSettle  = 100 * time.Millisecond
	defaultMaxSize = regular.MaxSize
)

// Resolver finds the types of messages inside an Any.
type Resolver interface {
	protoregistry.MessageTypeResolver
	protoregistry.ExtensionTypeResolver
}

// Config configures [NewBuilder]. The zero value works.
type Config struct {
	// Recheck is how often a file is looked at without a notification. 0 means 5 seconds,
	// a negative value never: then a file system without notifications is an error of Open.
	Recheck time.Duration
	// Settle is how long a file that is written in place must be left alone before it is
	// read. 0 means 100 milliseconds, a negative value not at all.
	Settle time.Duration
	// MaxSize is the largest file that is read, in bytes, and bounds what the aliases of a
	// YAML file may expand to. 0 or less means 128 MiB. What a file in JSON or YAML takes
	// while it is converted is a multiple of its size.
	MaxSize int64
	// Types finds types before the global registry, which knows those that are linked into
	// the program, does. JSON, YAML and text need the type of each Any inside; the binary
	// form needs none. nil means the global registry alone.
	Types Resolver
	// IgnoreUnknownFields takes files in JSON, YAML and text that have fields or enum names
	// which their messages have not. They are bad files otherwise.
	IgnoreUnknownFields bool
	// Logger hears of bad files, those that Secrets refer to among them; nil discards.
	Logger *slog.Logger
	// Report is told what is wrong with a file, or with one that a Secret in it refers to
	// ([ReferenceError]), once when that changes, and nil when all is good again. The error is
	// an [*Error]. It is called by the one that receives from the file's stream, so a Report
	// that blocks holds up that file; with several streams, by several goroutines. nil for
	// none.
	Report func(path string, err error)

	v2 bool // of a file that may have the type URLs of version 2, and is asked by them
}

// of is the configuration for a file of version 2 or 3.
func (c *Config) of(v2 bool) *Config {
	if !v2 {
		return c
	}
	own := *c
	own.v2, own.Types = true, apiv2.Types{Resolver: c.Types}
	return &own
}

func (c Config) withDefaults() *Config {
	if c.Recheck == 0 {
		c.Recheck = defaultRecheck
	}
	if c.Settle == 0 {
		c.Settle = defaultSettle
	}
	if c.MaxSize <= 0 || c.MaxSize == math.MaxInt64 {
		c.MaxSize = defaultMaxSize
	}
	if c.Types == nil {
		c.Types = protoregistry.GlobalTypes
	} else {
		c.Types = typesThenGlobal{c.Types}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Report == nil {
		c.Report = func(string, error) {}
	}
	return &c
}

// Builder is the [transport.Builder] of servers that are files. Safe for concurrent use.
type Builder struct {
	config *Config
	next   transport.Builder
}

// NewBuilder makes a builder. Servers that are no file are left to next; with nil they are
// an error of Build.
func NewBuilder(c Config, next transport.Builder) *Builder {
	return &Builder{config: c.withDefaults(), next: next}
}

// Build makes the connection to a file. It does not look at the file, which may come later.
// It returns an error for a server without a path, and for one of the incremental variant,
// which files have not.
func (b *Builder) Build(s bootstrap.ManagementServer) (transport.Conn, error) {
	if s.File() == nil && b.next != nil {
		return b.next.Build(s)
	}
	c, err := b.build(s)
	if err != nil {
		return nil, fmt.Errorf("management server %q: %w", s.URI, err)
	}
	return c, nil
}

func (b *Builder) build(s bootstrap.ManagementServer) (*conn, error) {
	switch {
	case s.File() == nil:
		return nil, errors.New("not a file")
	case s.File().Path == "":
		return nil, errors.New("no path is named")
	case s.Delta:
		return nil, errors.New("a file has no incremental variant")
	}
	path, err := filepath.Abs(s.File().Path)
	if err != nil {
		return nil, err
	}
	c := &conn{uri: s.URI, path: path, config: b.config.of(s.TransportV2), streams: map[*stream]struct{}{}}
	if dir := s.File().WatchedDirectory; dir != "" {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		c.watched = []string{dir}
	}
	return c, nil
}
