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
	"fmt"
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
)

// Variants of the protocol, resource types, and ways to subscribe.
const (
	Delta    = "delta"
	EDSType  = "eds"
	Wildcard = "wildcard"
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
	Mode     string // named or wildcard
	Work     string // a workload
	N        int    // resources
	Updates  int    // changes (update, fanout)
	Watchers int    // on the one resource (fanout)
	Eps      int    // endpoints of each ClusterLoadAssignment
	TLS      bool
	Retain   string // none, bytes or proto: what a driver keeps, where it has a choice
	Bin      string // file for the raw latencies: int64 nanoseconds, little-endian
	CPUProf  string
	MemProf  string        // heap and allocations, one sample in 64 KiB
	Phase    string        // that the CPU profile covers: load, or measure, which follows it
	Wait     time.Duration // limit of a phase

	// CA is the PEM text of the server's certificate, with TLS.
	CA    []byte
	roots *x509.CertPool
}

func (c *Config) flags(fs *flag.FlagSet) {
	fs.StringVar(&c.Addr, "addr", "127.0.0.1:18000", "management server")
	fs.StringVar(&c.Variant, "variant", "sotw", "sotw|delta")
	fs.StringVar(&c.Type, "type", "cds", "cds|eds")
	fs.StringVar(&c.Mode, "mode", "named", "named|wildcard")
	fs.StringVar(&c.Work, "work", Load, "load|update|fanout|incr|reconnect|cancel")
	fs.IntVar(&c.N, "n", 1000, "resources")
	fs.IntVar(&c.Updates, "updates", 200, "updates")
	fs.IntVar(&c.Watchers, "watchers", 1000, "watchers (fanout)")
	fs.IntVar(&c.Eps, "eps", 10, "endpoints per assignment (eds)")
	fs.BoolVar(&c.TLS, "tls", false, "use the server's TLS port")
	fs.StringVar(&c.Retain, "retain", "", "none|bytes|proto")
	fs.StringVar(&c.Bin, "bin", "", "write raw latencies here")
	fs.StringVar(&c.CPUProf, "cpuprofile", "", "write a CPU profile here")
	fs.StringVar(&c.MemProf, "memprofile", "", "write a heap profile here")
	fs.StringVar(&c.Phase, "profphase", "load", "load|measure")
	fs.DurationVar(&c.Wait, "wait", 100*time.Second, "give up a phase after this")
}

// TypeURL of the resources.
func (c *Config) TypeURL() string {
	if c.Type == EDSType {
		return EDS
	}
	return CDS
}

// ClientTLS trusts the server's certificate; nil means plaintext.
func (c *Config) ClientTLS() *tls.Config {
	if !c.TLS {
		return nil
	}
	return &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12}
}

// scenario is what the server has to know.
func (c *Config) scenario() Scenario {
	return Scenario{Variant: c.Variant, Type: c.Type, Work: c.Work, N: c.N, Eps: c.Eps}
}

// names lists the resources to subscribe to; nil for all.
func (c *Config) names() []string {
	if c.Mode == Wildcard && c.Work != Incr && c.Work != Cancel {
		return nil
	}
	names := make([]string, c.N)
	for i := range names {
		names[i] = Name(i)
	}
	return names
}

// Name is the name of resource i. All names have the same length.
func Name(i int) string { return fmt.Sprintf("svc-%08d.prod.svc.cluster.local", i) }

// Index is the inverse of [Name].
func Index(name string) int { return int(digits(name[4:12])) }

func digits(s string) (n int64) {
	for i := range len(s) {
		n = n*10 + int64(s[i]-'0')
	}
	return n
}
