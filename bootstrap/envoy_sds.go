package bootstrap

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/xdswatch/xdswatch/internal/regular"
)

const (
	secretType   = "envoy.extensions.transport_sockets.tls.v3.Secret"
	resourceType = "envoy.service.discovery.v3.Resource"
)

// givenSecret gives read a part of the Secret that an SdsSecretConfig names: one of the bootstrap's own,
// or in a file. It is false if that comes from elsewhere.
func (x field) givenSecret(part string, read func(field)) bool {
	source, name := x.at("sds_config"), x.at("name")
	kind, path := source.oneOf("path_config_source", "path", "ads", "api_config_source", "self")
	switch {
	case !x.present():
		return false
	case !source.present():
		if name.required() != "" {
			name.read(x.doc.secrets.hidden().staticSecret(name.str()), part, "static_resources.secrets", read)
		}
		return true
	case kind == "path_config_source":
		if !path.object() {
			return true
		}
		path = path.at("path")
	case kind == "path":
	default:
		return !source.object()
	}
	source.at("resource_api_version").apiVersion()
	file, ok := path.openFile()
	if name.required() == "" || !ok {
		return true
	}
	file.known("envoy.service.discovery.v3.DiscoveryResponse")
	name.read(file.secretOf(name.str()), part, file.doc.source, read)
	x.doc.faults = append(x.doc.faults, file.doc.faults...)
	x.doc.notices = append(x.doc.notices, file.doc.notices...)
	return true
}

// read gives read a part of the Secret that x names, or says what is lacking where it should be.
func (x field) read(secret field, part, where string, read func(field)) {
	secret.known(secretType)
	switch given := secret.at(part); {
	case given.present():
		read(given)
	case secret.present():
		given.fault("required")
	default:
		x.fault("%s has no %s of this name", where, secretType)
	}
}

// staticSecret finds a Secret by name in static_resources; absent if there is none. The first of
// a name counts.
func (x field) staticSecret(name string) field {
	for _, item := range x.items() {
		if item.entry() && item.at("name").val == name {
			return item
		}
	}
	return field{doc: x.doc}
}

// openFile reads the file of a path: the root of a document of its own, if there is no
// fault. No value in it is ever shown.
func (x field) openFile() (root field, ok bool) {
	path := x.required()
	if path == "" {
		return field{}, false
	}
	data, err := regular.Read(path, regular.MaxBootstrap)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // the field has the path
	}
	if err != nil {
		x.fault("cannot be read: %v", err)
		return field{}, false
	}
	tree, err := decode(path, data)
	if err != nil {
		x.doc.faults = append(x.doc.faults, err)
		return field{}, false
	}
	return field{doc: &document{source: path, opts: x.doc.opts, camel: true, yaml: isYAML(data)}, val: tree, secret: true}, true
}

// secretOf finds a Secret by name among the resources of a DiscoveryResponse, which may be
// wrapped; absent if there is none. The first of a name counts.
func (x field) secretOf(name string) field {
	for _, item := range x.at("resources").items() {
		typ, _ := item.anyType()
		if typ == resourceType {
			item.known(resourceType)
			item = item.at("resource")
			typ, _ = item.anyType()
		}
		if typ == secretType && item.at("name").val == name {
			item.path = fmt.Sprintf("resources[%q]", name)
			return item
		}
	}
	return field{doc: x.doc}
}
