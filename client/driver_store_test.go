package client_test

import (
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/testutil/script"
	"github.com/xdswatch/xdswatch/xdstp"
)

// scriptStore is the store of a script. It forgets what it is told to keep.
type scriptStore struct {
	gate *gate

	mu   sync.Mutex
	kept map[string][]client.StoredResource // by type URL
}

func (s *scriptStore) put(t *testing.T, short string, words []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range script.Stored(short, words) {
		name, err := xdstp.Canonical(r.Name)
		must(t, err)
		r.Name = name
		b, err := proto.Marshal(r)
		must(t, err)
		kept := client.StoredResource{Name: name, Resource: b, Server: uri(0), Updated: time.Now()}
		if r.Ttl != nil {
			kept.Expires = time.Now().Add(r.Ttl.AsDuration())
		}
		url := script.TypeURL(short)
		s.kept[url] = append(s.kept[url], kept)
	}
}

// Load implements client.Store.
func (s *scriptStore) Load(at client.StoreSection, names []string, yield func(client.StoredResource)) error {
	s.gate.pass(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.kept[at.Type] {
		yield(r)
	}
	return nil
}

// Save implements client.Store.
func (s *scriptStore) Save(client.StoreSection, []client.StoredResource) error { return nil }

// Names implements client.Store.
func (s *scriptStore) Names(client.StoreSection) ([]string, error) { return nil, nil }
