package file

import (
	"context"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Collection is a list collection from a file (xRFC TP1, "file:///…" locators).
type Collection struct {
	Name    string // the file's URL, or the name that the Resource has
	Version string // of the Resource, or made of the file's hash
	// Resource is the collection: a message such as
	// envoy.config.cluster.v3.ClusterCollection.
	Resource *anypb.Any
}

// ReadCollection reads the list collection in a file once, without waiting for the end of a
// write. location is a path or a file URL. It uses MaxSize, Types and IgnoreUnknownFields of the
// configuration. The error is an [*Error].
func ReadCollection(location string, c Config) (*Collection, error) {
	path, isURL := PathOf(location)
	if !isURL {
		var err error
		if path, err = filepath.Abs(location); err != nil {
			return nil, &Error{Path: location, Err: err}
		}
	}
	c.Settle = -1
	s := source{ctx: context.Background(), path: path, config: c.withDefaults()}
	again := s.check(time.Now())
	for tries := 0; again > 0 && tries < 100; tries++ {
		again = s.check(time.Now())
	}
	switch {
	case again > 0:
		return nil, &Error{Path: path, Err: ErrUnsettled}
	case s.fault != nil:
		return nil, s.fault
	case s.content.list == nil || !isCollection(s.content.typeURL):
		return nil, &Error{Path: path, Err: ErrNotCollection}
	}
	list := s.content.list
	name := list.GetName()
	if isURL {
		name = location
	} else if name == "" {
		name = urlOf(path)
	}
	return &Collection{Name: name, Version: s.content.version, Resource: proto.CloneOf(list.GetResource())}, nil
}
