// Package grpcrules judges resources as grpc-go's xDS client does (v1.85): what it finds gRPC would
// refuse, with the path of each field and the ID of each rule. A program that serves or checks
// configuration for gRPC learns so what a gRPC client would say, without one:
//
//	for _, f := range (grpcrules.Options{}).Judge(cluster) {
//		fmt.Println(f)
//	}
//
// [Options.Check] is an error for [resource.With], which makes a client refuse single resources, and
// [Options.Guard] is a guard of a client that refuses whole responses
// ([client.Config.Guards]).
//
// gRPC does not run the rules of the messages (PGV), and looks at fewer fields than Envoy: what Envoy
// refuses may be good here. docs/VALIDATION.md lists the rules. Text of findings names fields and
// rules, and quotes no value but names of certificate providers.
package grpcrules
