// Package load counts what a program does for the clusters of a management server, and reports it
// there (LRS, envoy.service.load_stats.v3).
//
//	r := load.New(c, load.Config{})
//	defer r.Close() // sends a last report
//
//	cluster := r.Cluster(load.TargetOf(server, message)) // nil if its server asks for no reports
//	defer cluster.Close()
//	locality := cluster.Locality(assignment.GetLocality(), assignment.GetPriority())
//
//	call := locality.Begin(address) // a request begins
//	call.End(err == nil)            // and ends
//
// The adapters of package view do all of this, with one field or option. docs/LOAD.md says what
// is reported, and when.
package load
