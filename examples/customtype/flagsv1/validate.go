// Package flagsv1 is the Go code of flags.proto, a resource type that is not Envoy's.
package flagsv1

//go:generate protoc -I ../../.. --go_out=../../.. --go_opt=paths=source_relative examples/customtype/flagsv1/flags.proto

import "errors"

// Validate refuses a flag without a name. The client calls a message's Validate as it
// calls those that are generated for Envoy's protos; what it refuses is NACKed.
func (f *FeatureFlags) Validate() error {
	if _, ok := f.GetFlags()[""]; ok {
		return errors.New("a flag has no name")
	}
	return nil
}
