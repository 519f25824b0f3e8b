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
			name.read(x.doc.staticSecret(name.str()), part, "static_resources.secrets", read)
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
	file := path.secretFile()
	if name.required() == "" || file == nil {
		return true
	}
	name.read(file.find(name.str(), inResponse), part, file.doc.source, read)
	x.doc.faults = append(x.doc.faults, file.doc.faults...)
	x.doc.notices = append(x.doc.notices, file.doc.notices...)
	file.doc.faults, file.doc.notices = nil, nil // they are told
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

// secretList finds Secrets by name, and looks at each once: a bootstrap may have thousands, and name each.
type secretList struct {
	doc   *document
	rest  []field          // that nobody has looked at
	found map[string]field // the first of a name
}

// find finds a Secret; absent if there is none. look says which Secret an element of the list is.
func (s *secretList) find(name string, look func(field) (secret field, name string, ok bool)) field {
	for ; len(s.rest) > 0; s.rest = s.rest[1:] {
		if secret, ok := s.found[name]; ok {
			return secret
		}
		secret, its, ok := look(s.rest[0])
		if _, twice := s.found[its]; ok && !twice {
			s.found[its] = secret
		}
	}
	if secret, ok := s.found[name]; ok {
		return secret
	}
	return field{doc: s.doc}
}

// staticSecret finds a Secret by name in static_resources.
func (d *document) staticSecret(name string) field {
	if d.own == nil {
		d.own = &secretList{doc: d.secrets.doc, rest: d.secrets.hidden().items(), found: map[string]field{}}
	}
	return d.own.find(name, func(item field) (field, string, bool) {
		if !item.entry() {
			return item, "", false
		}
		its, ok := item.at("name").val.(string)
		return item, its, ok
	})
}

// secretFile reads the file of a path; nil if that has a fault.
func (x field) secretFile() *secretList {
	if known := x.doc.files[x.str()]; known != nil {
		return known
	}
	root, ok := x.openFile()
	if !ok {
		return nil
	}
	root.known("envoy.service.discovery.v3.DiscoveryResponse")
	file := &secretList{doc: root.doc, rest: root.at("resources").items(), found: map[string]field{}}
	if x.doc.files == nil {
		x.doc.files = map[string]*secretList{}
	}
	x.doc.files[x.str()] = file
	return file
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

// inResponse says which Secret a resource of a DiscoveryResponse is, which may be wrapped.
func inResponse(item field) (secret field, name string, ok bool) {
	typ, _ := item.anyType()
	if typ == resourceType {
		item.known(resourceType)
		item = item.at("resource")
		typ, _ = item.anyType()
	}
	name, ok = item.at("name").val.(string)
	item.path = fmt.Sprintf("resources[%q]", name)
	return item, name, ok && typ == secretType
}
