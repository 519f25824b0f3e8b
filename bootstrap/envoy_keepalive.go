package bootstrap

import "time"

const httpOptionsType = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// leastKeepalive is the least interval that gRPC keeps to (gRFC A8).
const leastKeepalive = 10 * time.Second

// keepalive reads connection_keepalive of a cluster, in the place where Envoy has it now or in
// that where it had it before; nil if there is none.
func (x field) keepalive() Carrier {
	found := x.at("http2_protocol_options").at("connection_keepalive")
	x.at("typed_extension_protocol_options").each(func(options field) {
		if typ, _ := options.anyType(); typ != httpOptionsType {
			return
		}
		for _, name := range []string{"explicit_http_config", "auto_config"} {
			at := options.at(name).at("http2_protocol_options").at("connection_keepalive")
			if at.present() {
				found = at // it goes before the older place
			}
		}
	})
	if !found.object() {
		return nil
	}
	interval, timeout := found.at("interval"), found.at("timeout")
	if !interval.present() { // Envoy asks before it uses a connection that was idle
		interval = found.at("connection_idle_interval")
	}
	// E-1: pings find a dead connection.
	g := &GRPC{KeepaliveTime: interval.duration(), KeepaliveTimeout: timeout.duration()}
	switch {
	case !timeout.present():
		timeout.fault("required")
	case g.KeepaliveTimeout < time.Millisecond:
		timeout.fault("want at least \"0.001s\"")
	}
	switch {
	case !interval.present():
		found.notice("has no interval and no effect")
		return nil
	case g.KeepaliveTime < time.Millisecond:
		interval.fault("want at least \"0.001s\"")
	case g.KeepaliveTime < leastKeepalive:
		interval.notice("is raised to %v, the least that gRPC keeps to", leastKeepalive)
		g.KeepaliveTime = leastKeepalive
	}
	return g
}
