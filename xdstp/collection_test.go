package xdstp

import "testing"

const listenerURL = "type.googleapis.com/envoy.config.listener.v3.Listener"

func TestTypeSegment(t *testing.T) {
	for _, url := range []string{"type.googleapis.com/a.b.C", "a.b.C", "/a.b.C", "x/y/a.b.C"} {
		if got := TypeSegment(url); got != "a.b.C" {
			t.Errorf("TypeSegment(%q) = %q, want a.b.C", url, got)
		}
	}
}

// spec: COLL-1
func TestIsListCollection(t *testing.T) {
	tests := []struct {
		name string
		want bool
	}{
		{"xdstp://a/envoy.config.listener.v3.ListenerCollection/foo", true},
		{"xdstp:///envoy.config.listener.v3.ListenerCollection", true},
		{"xdstp://a/envoy.config.listener.v3.ListenerCollection/foo?a=b", true},
		{"xdstp://a/envoy.config.listener.v3.Listener/foo", false},
		{"xdstp://a/envoy.config.listener.v3.Listener/*", false},
		{"xdstp://a/envoy.config.listener.v3.ListenerCollection/*", false},
		{"xdstp://a/envoy.config.cluster.v3.ClusterCollection/foo", false},
		{"xdstp://a/ListenerCollection/foo", false},
		{"xdstp://a/Collection/foo", false},
	}
	for _, tt := range tests {
		n := mustParse(t, tt.name)
		if got := n.IsListCollection(listenerURL); got != tt.want {
			t.Errorf("%s is a list collection of listeners = %v, want %v", tt.name, got, tt.want)
		}
		if tt.want && TypeSegment(ListCollectionURL(listenerURL)) != n.Type {
			t.Errorf("the collection's URL %q has not the segment %q", ListCollectionURL(listenerURL), n.Type)
		}
	}
}

// spec: COLL-4
func TestIsEntryName(t *testing.T) {
	for name, want := range map[string]bool{
		"": true, "bar": true, "a/b": true, "A-z_0.9~:": true,
		"a b": false, "a#b": false, "ä": false, "a,b": false, "\x00": false, "a%2F": false,
	} {
		if got := IsEntryName(name); got != want {
			t.Errorf("IsEntryName(%q) = %v, want %v", name, got, want)
		}
	}
}
