// Package grpcrules holds the tests that compare validate/grpcrules with the xDS client of grpc-go: a
// module of its own, since that client is much to link.
package grpcrules
