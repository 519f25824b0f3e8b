package main

import (
	"bytes"
	"testing"
)

func TestEachAtItsSource(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	const want = `clusters: backend connects within 1s, from rest:catalogue
listeners: ingress is at 0.0.0.0:443, from dns:///ADDRESS
its secret: certificate is 1.pem, from file://DIR/secrets.yaml
its endpoints: pods is at 10.0.0.1:8080, from dns:///ADDRESS
the listener moves: ingress is at 0.0.0.0:8443, from dns:///ADDRESS
the secret is renewed: certificate is 2.pem, from file://DIR/secrets.yaml
the cluster is slower: backend connects within 2s, from rest:catalogue
the endpoint moves: pods is at 10.0.0.2:8080, from dns:///ADDRESS
a stream of rest:catalogue, for envoy.config.cluster.v3.Cluster
a stream of dns:///ADDRESS, for all types
a stream of file://DIR/secrets.yaml, for all types
a stream of dns:///ADDRESS, for envoy.config.endpoint.v3.ClusterLoadAssignment
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
