package configdump

import (
	"bufio"
	"encoding/json"
	"regexp"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/xdswatch/xdswatch/internal/jsontext"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

// dump is a dump that is being written.
type dump struct {
	Options
	names   *regexp.Regexp // nil for all
	mask    mask
	sources []Source
	out     *bufio.Writer // it keeps its first error
	json    *resourcejson.Writer
	over    <-chan struct{} // closed when nobody waits for the dump; nil for never
	begun   bool            // something stands in configs
}

// form is the JSON of Envoy's administration.
var form = resourcejson.Options{HideUnknown: true, ProtoNames: true}

const typePrefix = "type.googleapis.com/"

// has says whether there is a field of a name in a section; "" is every one.
func (d *dump) has(field string) bool {
	for _, s := range sections {
		if field == "" || s.message.ProtoReflect().Descriptor().Fields().ByTextName(field) != nil && field != "version_info" && field != "last_updated" {
			return true
		}
	}
	return false
}

func (d *dump) text(s string) { _, _ = d.out.WriteString(s) }

// next begins another member of configs.
func (d *dump) next() {
	if d.begun {
		d.text(",")
	}
	d.begun = true
	d.text("\n")
}

// section writes a section, or with Resource its elements if they are asked for.
func (d *dump) section(s section) {
	switch {
	case d.Resource == "":
		d.next()
		d.text(`{"@type":"` + typePrefix + string(s.message.ProtoReflect().Descriptor().FullName()) + `"`)
		d.members(s)
		d.text("}")
	case d.Resource != s.field:
	case s.element == nil:
		if m := d.bootstrap().GetBootstrap(); m != nil {
			d.config(m, d.mask)
		}
	default:
		d.elements(s, func(m proto.Message, _ Resource) { d.config(m, d.mask) })
	}
}

// config writes a member of configs.
func (d *dump) config(m proto.Message, only mask) {
	d.next()
	m = trimmed(m, only)
	_, _ = d.out.Write(form.Any(typePrefix+string(m.ProtoReflect().Descriptor().FullName()), m))
}

// members writes the fields of a section after its type.
func (d *dump) members(s section) {
	only, wanted := d.mask.of(s.field)
	if s.element == nil {
		if b := d.bootstrap().GetBootstrap(); wanted && b != nil {
			d.text(`,"` + s.field + `":`)
			_, _ = d.out.Write(d.json.Message(trimmed(b, only)))
		}
		return
	}
	begun, version, several := false, "", false
	visit := func(m proto.Message, r Resource) {
		if r.Content != nil {
			several = several || version != "" && version != r.Version
			version = r.Version
		}
		if !wanted {
			return
		}
		if begun {
			d.text(",\n")
		} else {
			d.text(`,"` + s.field + `":[` + "\n")
		}
		begun = true
		_, _ = d.out.Write(d.json.Message(trimmed(m, only)))
	}
	_, wantsVersion := d.mask.of("version_info")
	if wantsVersion = wantsVersion && s.versioned; !wanted && !wantsVersion {
		return
	}
	d.elements(s, visit)
	if begun {
		d.text("]")
	}
	// What all resources have is the version of the section.
	if wantsVersion && version != "" && !several {
		text, _ := json.Marshal(version)
		d.text(`,"version_info":` + string(jsontext.Visible(text)))
	}
}

// elements calls visit with the resources of a section as they stand in its list.
func (d *dump) elements(s section, visit func(proto.Message, Resource)) {
	for _, from := range d.sources {
		for r := range from.Resources(s.typeURL) {
			if d.gone() {
				return
			}
			if d.names != nil && !d.names.MatchString(r.Name) {
				continue
			}
			if m := s.element(r); m != nil {
				visit(m, r)
			}
		}
	}
}

// gone says whether nobody reads, or waits while no name matches.
func (d *dump) gone() bool {
	select {
	case <-d.over:
		return true
	default:
		_, err := d.out.Write(nil)
		return err != nil
	}
}

// bootstrap is what is known of the bootstrap: the node.
func (d *dump) bootstrap() *adminv3.BootstrapConfigDump {
	for _, from := range d.sources {
		if n := from.Node(); n != nil {
			return &adminv3.BootstrapConfigDump{Bootstrap: &bootstrapv3.Bootstrap{Node: n}}
		}
	}
	return nil
}

// badPath finds a path of the mask that leads to no field.
func (d *dump) badPath() string {
	var roots []protoreflect.MessageDescriptor
	for _, s := range sections {
		md := s.message.ProtoReflect().Descriptor()
		if d.Resource == "" {
			roots = append(roots, md)
		} else if fd := md.Fields().ByTextName(d.Resource); fd != nil && fd.Message() != nil {
			roots = append(roots, fd.Message())
		}
	}
	return d.mask.bad(roots)
}
