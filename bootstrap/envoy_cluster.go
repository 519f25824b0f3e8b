package bootstrap

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
)

var discoveryTypes = map[string]string{
	"0": "STATIC", "1": "STRICT_DNS", "2": "LOGICAL_DNS", "3": "EDS", "4": "ORIGINAL_DST",
}

// clusterIndex finds static clusters, each of which is read when it is first asked for:
// the others may be of any kind.
type clusterIndex struct {
	fields map[string]field
	broken bool                        // some cannot be read: a name may be theirs
	read   map[string]ManagementServer // URI, ChannelCreds and Carrier only
}

// clusterIndex is that of a list of clusters. Two of one name are a fault, as in Envoy: they may differ in how they
// are secured.
func (x field) clusterIndex() clusterIndex {
	index := clusterIndex{fields: map[string]field{}, read: map[string]ManagementServer{}}
	faults := len(x.doc.faults)
	for _, item := range x.items() {
		at := item.at("name")
		name, _ := at.val.(string)
		switch before, ok := index.fields[name]; {
		case !ok:
			index.fields[name] = item
		case name != "":
			at.fault("is the name of %s too", before.path)
		}
	}
	index.broken = x.void || len(x.doc.faults) > faults
	return index
}

func (c clusterIndex) find(name string) (ManagementServer, bool) {
	if s, ok := c.read[name]; ok {
		return s, true
	}
	x, ok := c.fields[name]
	if !ok || name == "" {
		return ManagementServer{}, false
	}
	var s ManagementServer
	s.URI, s.ChannelCreds = x.cluster()
	s.Carrier = x.keepalive()
	c.read[name] = s
	return s, true
}

// cluster reads how a static cluster is reached: the first endpoint of its best priority, and its transport
// socket. It must not be found by discovery itself (envoy_grpc.cluster_name).
func (x field) cluster() (uri string, creds ChannelCreds) {
	x.known("envoy.config.cluster.v3.Cluster")
	x.discoveryType()
	uri, host := x.at("load_assignment").firstTarget()
	for _, name := range []string{"transport_socket_matches", "transport_socket_matcher"} {
		// H-6: without it the connection may be in plaintext.
		if m := x.at(name); m.present() {
			m.fault("is not supported for the cluster of a management server; want transport_socket")
		}
	}
	return uri, x.at("transport_socket").transportSocket(host)
}

func (x field) discoveryType() {
	if custom := x.at("cluster_type"); custom.object() {
		config := custom.at("typed_config")
		if typ, ok := config.anyType(); ok && typ != "envoy.extensions.clusters.dns.v3.DnsCluster" {
			custom.fault("is not supported for the cluster of a management server; want type STATIC, STRICT_DNS or LOGICAL_DNS")
		}
		return
	}
	typ := x.at("type")
	switch typ.enum(discoveryTypes, "STATIC") {
	// BOOTE-3: the cluster of a management server is static.
	case "STATIC", "STRICT_DNS", "LOGICAL_DNS", "":
	default:
		typ.fault("the cluster of a management server must be STATIC, STRICT_DNS or LOGICAL_DNS")
	}
}

// firstTarget is the gRPC target of the first endpoint of the best priority (the lowest number) of a
// ClusterLoadAssignment, and its host if it has one.
func (x field) firstTarget() (uri, host string) {
	if !x.object() {
		if !x.present() {
			x.fault("required")
		}
		return "", ""
	}
	var found []field
	faults := len(x.doc.faults)
	groups := x.at("endpoints").items()
	slices.SortStableFunc(groups, func(a, b field) int { return cmp.Compare(a.priority(), b.priority()) })
	for _, group := range groups {
		if group.entry() {
			found = append(found, group.at("lb_endpoints").items()...)
		}
	}
	if len(found) == 0 {
		if len(x.doc.faults) == faults {
			x.fault("has no endpoint")
		}
		return "", ""
	}
	if len(found) > 1 {
		x.notice("%d endpoints are given; only the first of the best priority is used", len(found))
	}
	first := found[0]
	if !first.entry() {
		return "", ""
	}
	return first.at("endpoint").at("address").target()
}

// priority is that of a group of endpoints; 0 if it cannot be read.
func (x field) priority() uint32 {
	if _, ok := x.val.(map[string]any); !ok {
		return 0
	}
	return x.at("priority").uint32()
}

// target makes a gRPC target of an envoy.config.core.v3.Address.
func (x field) target() (uri, host string) {
	socket, pipe := x.at("socket_address"), x.at("pipe")
	switch {
	case socket.object():
		address := socket.at("address")
		if host = address.required(); strings.ContainsAny(host, "/@?#[]\\ \r\n\x00") {
			address.hidden().fault("want an IP address or the name of a host") // H-3: a URL may have a password
		}
		port := strconv.Itoa(int(socket.at("port_value").port()))
		// With the scheme, a host called "unix" or "dns" is still a host.
		return "dns:///" + net.JoinHostPort(host, port), host
	case pipe.object():
		return pipeTarget(pipe.at("path").required()), ""
	case !socket.present() && !pipe.present():
		x.fault("want socket_address or pipe")
	}
	return "", ""
}

// pipeTarget names a Unix socket; "@" begins an abstract one, as in Envoy.
func pipeTarget(path string) string {
	if name, ok := strings.CutPrefix(path, "@"); ok {
		return "unix-abstract:" + name
	}
	return "unix:" + path
}
