package file

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// content is what a good file holds. It is immutable.
type content struct {
	// body is an encoded DiscoveryResponse; what it does not say stands in the fields.
	body     []byte
	version  string // of body, or else made of the file's hash
	typeURL  string // of body, or else of its first resource; "" if it says nothing of types
	complete bool   // body says both
	empty    bool   // body has no resources
	limited  bool   // a resource has a time to live

	// list is set for a file that holds a Resource, and body is not.
	list *discoveryv3.Resource

	refers references

	// entries are the parts of body by the hash of the JSON that they were made of.
	entries map[[sha256.Size]byte][]byte
}

// Numbers of the fields of a DiscoveryResponse.
const (
	responseVersion   protowire.Number = 1
	responseResources protowire.Number = 2
	responseTypeURL   protowire.Number = 4
	responseNonce     protowire.Number = 5
)

// ofBody makes the content of an encoded DiscoveryResponse. An entry that does not parse
// spoils it, as it would for every protobuf parser.
func ofBody(body []byte, sum [sha256.Size]byte, format string) (*content, error) {
	r, err := wire.ScanSotW(body)
	if err != nil {
		return nil, &SyntaxError{Format: format, Entry: -1, Err: err}
	}
	c := &content{
		body: body, version: r.Version, typeURL: r.TypeURL,
		complete: r.Version != "" && r.TypeURL != "", empty: len(r.Resources) == 0,
	}
	for i := range r.Resources {
		e := &r.Resources[i]
		if e.Fault != nil {
			return nil, &SyntaxError{Format: format, Entry: i, Err: e.Fault}
		}
		if c.typeURL == "" {
			c.typeURL = string(e.TypeURL)
		}
		c.limited = c.limited || e.HasTTL
	}
	c.setVersion(sum)
	// FILE-5: the file's URL is the name.
	if len(r.Resources) == 1 && isCollection(c.typeURL) && len(r.Resources[0].Name) == 0 {
		e := &r.Resources[0]
		c.list = &discoveryv3.Resource{
			Version:  c.version,
			Resource: &anypb.Any{TypeUrl: c.typeURL, Value: e.Payload},
		}
	}
	return c, nil
}

// ofResource makes the content of a file that holds a single Resource: a list collection
// or, as far as the protocol is concerned, anything (xRFC TP1).
func ofResource(r *discoveryv3.Resource, sum [sha256.Size]byte, format string) (*content, error) {
	if r.GetResource() == nil {
		return nil, &SyntaxError{Format: format, Entry: -1, Err: errNoResource}
	}
	c := &content{version: r.GetVersion(), typeURL: r.GetResource().GetTypeUrl(), list: r, limited: r.GetTtl() != nil}
	c.setVersion(sum)
	return c, nil
}

// setVersion gives content without a version one that is its own.
func (c *content) setVersion(sum [sha256.Size]byte) {
	if c.version == "" {
		c.version = hex.EncodeToString(sum[:8])
	}
}

// isCollection knows the types of list collections by their names (xRFC TP1, "List
// collections").
func isCollection(typeURL string) bool { return strings.HasSuffix(typeURL, "Collection") }

// answers says whether the content is one for a type. One that holds nothing is for all types but
// those of list collections, which are there or the file is a bad one (FILE-5).
func (c *content) answers(typeURL string) bool {
	// C-2: a list that is not there makes the file a bad one.
	if c.empty && isCollection(typeURL) {
		return false
	}
	return c.typeURL == "" || c.typeURL == typeURL
}

// frame makes a response to a type of the content. Of the names that were asked for, one
// that is the file's URL names a collection without a name.
func (c *content) frame(path, typeURL, nonce string, names [][]byte) ([]byte, error) {
	if c.list != nil {
		return c.listFrame(path, typeURL, nonce, names)
	}
	b := make([]byte, len(c.body), len(c.body)+len(c.version)+len(typeURL)+len(nonce)+16)
	copy(b, c.body)
	if !c.complete { // a field that comes again replaces what was there
		b = appendText(b, responseVersion, c.version)
		b = appendText(b, responseTypeURL, typeURL)
	}
	return appendText(b, responseNonce, nonce), nil
}

func (c *content) listFrame(path, typeURL, nonce string, names [][]byte) ([]byte, error) {
	r := &discoveryv3.DiscoveryResponse{VersionInfo: c.version, TypeUrl: typeURL, Nonce: nonce}
	called := []string{c.list.GetName()}
	if isCollection(typeURL) {
		called = listNames(path, names, c.list.GetName())
	}
	named := proto.CloneOf(&discoveryv3.Resource{
		Version: c.version, Aliases: c.list.GetAliases(), Ttl: c.list.GetTtl(),
		CacheControl: c.list.GetCacheControl(), Metadata: c.list.GetMetadata(),
	})
	named.Resource = c.list.GetResource()
	for _, name := range called {
		named.Name = name
		wrapped := &anypb.Any{}
		if err := anypb.MarshalFrom(wrapped, named, deterministic); err != nil {
			return nil, err
		}
		r.Resources = append(r.Resources, wrapped)
	}
	return proto.Marshal(r)
}

// listNames are the names under which a collection was asked for: URLs of the file, however
// they are spelled, or else the name that the file gives, or else the file's URL.
func listNames(path string, names [][]byte, own string) (called []string) {
	for _, name := range names {
		if p, ok := PathOf(string(name)); ok && p == path {
			called = append(called, string(name))
		}
	}
	switch {
	case len(called) > 0:
		return called
	case own != "":
		return []string{own}
	}
	return []string{urlOf(path)}
}

// urlOf is the file URL of an absolute path.
func urlOf(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: p}).String()
}

// PathOf returns the path of a file URL, cleaned; ok is false for other texts, and for the URL
// of a file on another host.
func PathOf(text string) (path string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || !utf8.ValidString(text) || u.Scheme != "file" || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", false
	}
	p := filepath.FromSlash(u.Path)
	if filepath.VolumeName(p[1:]) != "" {
		p = p[1:]
	}
	return filepath.Clean(p), true
}

func appendText(b []byte, num protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, s)
}
