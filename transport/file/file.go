// Package file makes a file a carrier of discovery responses: it reads the file when a stream is
// opened and whenever the file changed, and makes a response of it for each type that is
// subscribed to (xDS protocol, "Filesystem subscriptions";
// envoy.config.core.v3.PathConfigSource).
//
// A file holds one DiscoveryResponse, with resources of one type, or one Resource with a list collection (xRFC TP1,
// "file:///…" locators), as binary, text, JSON or YAML. A subscription to another type gets an error that says what the file
// holds. The suffix of its path decides: .pb;
// .pb_text, .txtpb, .textproto, .pbtxt or .prototext; .json; .yaml or .yml. With any other
// suffix the content decides. The binary form is passed on as it is; of JSON and YAML only the
// entries that changed are converted again. A list collection in text, JSON or YAML may have any
// number of entries, even if Envoy's message has room for only one.
//
// # Changes
//
// A file has changed if the hash of its content has. One that is written or moved into place anew
// with the same content counts as a new response if a resource in it has a time to live, which
// begins anew then. The package looks at the file after
// notifications of the file system, for the directories in which the path, or a symbolic link in
// it, may come to mean another file, and for [bootstrap.File.WatchedDirectory]; and also every
// few seconds. It reads a file that was moved into its place at once if the file was not written
// to just before; a file that is written in place it reads when nobody wrote to it for a moment
// (Config.Settle). A slow writer may pause for longer than that, so the safe way is to write
// another file and to move it.
//
// The package looks in the same ways at the files that a Secret refers to, such as its
// certificate and key, and at the Secret's watched directories. When the content of one has
// changed, the Secret counts as new ([transport.Frame.Renewed]), so that its watches get it
// again, once for all of its files that are replaced together: while one of them is being written
// the others count as unchanged, for as long as a hundred times Config.Settle. If such a file
// cannot be read it counts as unchanged, and Config.Report and Config.Logger get a
// [ReferenceError], whether or not the Secret is subscribed to. Which files Secrets refer to is
// known only if their type is linked in, or is among Config.Types.
//
// # Bad files
//
// A file is used whole or not at all. If it is empty, too large, malformed, of an unknown type,
// missing, unreadable or not a regular one, the content that was read before stays in force. The
// stream stays open. Config.Report and Config.Logger get the error once; watches get it as an
// error of the names that they subscribe to, the wildcard's "*" among them, which ends with the
// next good content. An empty file is always bad, so that a file which is being truncated and
// written does not delete everything; `{}` is a file without resources.
//
// A file may have the type URLs of version 2 of the API if
// [bootstrap.ManagementServer.TransportV2] is set.
//
// The client refuses single resources as in any response, and uses the others of the file. Only
// Report and Logger get the NACK.
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
	// Recheck is how often the package looks at a file without a notification. 0 means 5
	// seconds, a negative value never: then a file system without notifications is an error of
	// Open.
	Recheck time.Duration
	// Settle is how long nobody must have written to a file in place before it is read. 0 means
	// 100 milliseconds, a negative value not at all.
	Settle time.Duration
	// MaxSize is the largest file that is read, in bytes, and also bounds the expansion of a
	// YAML file's aliases. 0 or less means 64 MiB. The conversion of JSON or YAML takes a
	// multiple of the file's size in memory.
	MaxSize int64
	// Types is asked for types before the global registry, which has those that are linked into
	// the program. JSON, YAML and text need the type of each Any inside; the binary form needs
	// none. nil means the global registry alone.
	Types Resolver
	// IgnoreUnknownFields accepts files in JSON, YAML and text with fields or enum names that
	// their messages do not have. Otherwise they are bad files.
	IgnoreUnknownFields bool
	// Logger gets bad files, those that Secrets refer to among them; nil discards.
	Logger *slog.Logger
	// Report is called with what is wrong with a file, or with one that a Secret in it refers to
	// ([ReferenceError]), once when that changes, and with nil when all is good again. The error
	// is an [*Error]. The goroutine that receives from the file's stream calls it, so a Report
	// that blocks holds up that file; with several streams, several goroutines do. nil for none.
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

// NewBuilder makes a builder. It passes servers that are no file to next; with nil they are an
// error of Build.
func NewBuilder(c Config, next transport.Builder) *Builder {
	return &Builder{config: c.withDefaults(), next: next}
}

// Build makes the connection to a file. It does not look at the file, which may be created
// later. It returns an error for a server without a path, and for one of the delta variant,
// which files do not have.
func (b *Builder) Build(s bootstrap.ManagementServer) (transport.Conn, error) {
	if s.File() == nil && b.next != nil {
		return b.next.Build(s)
	}
	c, err := b.build(s)
	if err != nil {
		return nil, fmt.Errorf("management server %q: %w", s.Name(), err)
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
