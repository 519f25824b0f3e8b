// Package kit is the shared half of every benchmark driver: flags, workloads, measurements
// and the control connection to the server. It uses the standard library only, so that it
// adds nothing to what a driver links.
//
// A driver implements [Client] and calls [Main]. It runs on Linux: the peak of the
// resident memory is read from /proc.
package kit

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"time"
)

// Workloads.
const (
	Load      = "load"      // subscribe to N resources and wait for all
	Update    = "update"    // load, then single-resource changes, one at a time
	Fanout    = "fanout"    // one resource with many watchers, then changes of it
	Incr      = "incr"      // subscribe one by one, each waiting for its resource
	Reconnect = "reconnect" // load, then the server ends the stream and changes one resource
	Cancel    = "cancel"    // load, then cancel all watches but one, one by one
	Heartbeat = "heartbeat" // load with TTLs, then rounds of heartbeats of all resources
	Keep      = "keep"      // load, then the client is closed: what it keeps is kept by then
)

// Variants of the protocol, resource types, and ways to subscribe.
const (
	Delta    = "delta"
	EDSType  = "eds"
	Wildcard = "wildcard"
	Glob     = "glob"
)

// Type URLs.
const (
	CDS = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EDS = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// Config is what the flags say.
type Config struct {
	Addr     string // of the management server; its control port is the next one
	Variant  string // sotw or delta
	Type     string // cds or eds
	Mode     string // named, wildcard or glob
	Work     string // a workload
	N        int    // resources
	Updates  int    // changes (update, fanout), or rounds (heartbeat)
	Watchers int    // on the one resource (fanout)
	Eps      int    // endpoints of each ClusterLoadAssignment
	// Authorities of xdstp names, and at how many servers they are; see [Scenario].
	Authorities, Servers int
	TTL                  time.Duration // of every resource (delta), in whole seconds; 0 for none
	Limit                int           // of the bytes of a request that the server takes; 0 for none
	TLS                  bool
	Retain               string // none, bytes or proto: what a driver keeps, where it has a choice
	Bin                  string // file for the raw latencies: int64 nanoseconds, little-endian
	CPUProf              string
	MemProf              string        // heap and allocations, one sample in 64 KiB
	Phase                string        // that the CPU profile covers: load, or measure, which follows it
	Wait                 time.Duration // limit of a phase

	// CA is the PEM text of the server's certificate, with TLS.
	CA    []byte
	roots *x509.CertPool
}

func (c *Config) flags(fs *flag.FlagSet) {
	fs.StringVar(&c.Addr, "addr", "127.0.0.1:18000", "management server")
	fs.StringVar(&c.Variant, "variant", "sotw", "sotw|delta")
	fs.StringVar(&c.Type, "type", "cds", "cds|eds")
	fs.StringVar(&c.Mode, "mode", "named", "named|wildcard|glob")
	fs.StringVar(&c.Work, "work", Load, "load|update|fanout|incr|reconnect|cancel|heartbeat|keep")
	fs.IntVar(&c.N, "n", 1000, "resources")
	fs.IntVar(&c.Updates, "updates", 200, "updates")
	fs.IntVar(&c.Watchers, "watchers", 1000, "watchers (fanout)")
	fs.IntVar(&c.Eps, "eps", 10, "endpoints per assignment (eds)")
	fs.IntVar(&c.Authorities, "authorities", 0, "authorities of xdstp names; 0 for old-style names")
	fs.IntVar(&c.Servers, "servers", 1, "servers that the authorities are at")
	fs.DurationVar(&c.TTL, "ttl", 0, "time to live of the resources (delta)")
	fs.IntVar(&c.Limit, "limit", 0, "the server ends a stream with a larger request, in bytes")
	fs.BoolVar(&c.TLS, "tls", false, "use the server's TLS port")
	fs.StringVar(&c.Retain, "retain", "", "none|bytes|proto")
	fs.StringVar(&c.Bin, "bin", "", "write raw latencies here")
	fs.StringVar(&c.CPUProf, "cpuprofile", "", "write a CPU profile here")
	fs.StringVar(&c.MemProf, "memprofile", "", "write a heap profile here")
	fs.StringVar(&c.Phase, "profphase", "load", "load|measure")
	fs.DurationVar(&c.Wait, "wait", 100*time.Second, "give up a phase after this")
}

// TypeURL of the resources.
func (c *Config) TypeURL() string { return c.Scenario().TypeURL() }

// ClientTLS trusts the server's certificate; nil means plaintext.
func (c *Config) ClientTLS() *tls.Config {
	if !c.TLS {
		return nil
	}
	return &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12}
}

// Scenario is what the server has to know.
func (c *Config) Scenario() *Scenario {
	return &Scenario{
		Variant: c.Variant, Type: c.Type, Work: c.Work, N: c.N, Eps: c.Eps,
		Authorities: c.Authorities, Servers: c.Servers, Glob: c.Mode == Glob, TTL: int(c.TTL / time.Second),
		Limit: c.Limit,
	}
}

// names lists what to subscribe to; nil for all.
func (c *Config) names() []string {
	if c.Mode == Wildcard && c.Work != Incr && c.Work != Cancel {
		return nil
	}
	return c.Scenario().Names()
}
