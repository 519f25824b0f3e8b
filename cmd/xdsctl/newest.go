package main

import (
	"google.golang.org/protobuf/proto"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/cmd/xdsctl/internal/report"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/view"
	"github.com/xdswatch/xdswatch/xdstp"
)

// newest knows the versions that the client holds: a resource that came again with another version
// alone is no news to a view.
type newest map[report.Ref]client.State

func newestOf(c *client.Client) newest {
	n := newest{}
	for _, st := range c.Dump() {
		if st.Raw != nil {
			n[report.Ref{Type: st.Type, Name: st.Name}] = st
		}
	}
	return n
}

// renew puts the newest versions into the value of a snapshot.
func (n newest) renew(value *report.ConfigValue, s *view.Snapshot) {
	if l := s.Listener; l != nil {
		n.version(&value.Listener.Version, lds.Type.TypeURL(), l.Name, l.Message)
	}
	for i, rc := range s.Routes {
		switch {
		case rc.Inline && s.Listener != nil:
			value.RouteConfigs[i].Version = value.Listener.Version
		case rc.Err == nil:
			n.version(&value.RouteConfigs[i].Version, rds.Type.TypeURL(), rc.Name, rc.Message)
		}
	}
	for c := range s.Clusters() {
		if entry := value.Clusters[c.Name]; c.Message != nil {
			n.version(&entry.Version, cds.Type.TypeURL(), c.Name, c.Message)
			value.Clusters[c.Name] = entry
		}
	}
}

// version replaces a version by that with which the client holds the same message.
func (n newest) version(v *string, typeURL, name string, m proto.Message) {
	key, err := xdstp.Canonical(name) // of which a view has the spelling
	st, held := n[report.Ref{Type: typeURL, Name: key}]
	if err != nil || !held || st.Version == *v {
		return
	}
	holds := m.ProtoReflect().New().Interface()
	if proto.Unmarshal(st.Raw, holds) == nil && proto.Equal(holds, m) {
		*v = st.Version
	}
}
