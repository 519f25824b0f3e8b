package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/resource/srds"
	"github.com/xdswatch/xdswatch/resource/wellknown"
)

// Held is a resource as a process says that it has it, or wants it.
type Held struct {
	Resource
	Status  string    // of ClientResourceStatus
	Updated time.Time // zero where there is none
	Error   *adminv3.UpdateFailureState
	Content *anypb.Any // that Message or Raw was made of; nil if there is none
}

// Process is what a process says that it has.
type Process struct {
	Node      *corev3.Node // nil if it does not say so
	Resources []Held       // in its order
}

// Contents are the resources of which there are contents. Without a name, as inline routes and static
// listeners of Envoy may be, nothing is a resource that a server sends.
func (p *Process) Contents() (rs []Resource) {
	for _, h := range p.Resources {
		if h.Content != nil && h.Name != "" {
			rs = append(rs, h.Resource)
		}
	}
	return rs
}

// FromStatus reads what the client status service answers.
func FromStatus(resp *statusv3.ClientStatusResponse) *Process {
	p := &Process{}
	for _, c := range resp.GetConfig() {
		if p.Node == nil {
			p.Node = c.GetNode()
		}
		at := Held{Resource: Resource{Scope: c.GetClientScope()}}
		//lint:ignore SA1019 older Envoys fill it
		for _, x := range c.GetXdsConfig() {
			p.walk(x.ProtoReflect(), at)
		}
		for _, x := range c.GetGenericXdsConfigs() {
			h := at
			h.Type, h.Name, h.Version, h.Status = x.GetTypeUrl(), x.GetName(), x.GetVersionInfo(), x.GetClientStatus().String()
			h.Error, h.Updated = x.GetErrorState(), timeOf(x.GetLastUpdated())
			p.Resources = append(p.Resources, h.with(x.GetXdsConfig()))
		}
	}
	return p
}

// timeOf is a time; zero for none. grpc-go says the year 1 for none.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil || t.AsTime().Year() <= 1 {
		return time.Time{}
	}
	return t.AsTime()
}

// with gives a resource its content, and its name unless it has one.
func (h Held) with(a *anypb.Any) Held {
	if a == nil {
		return h
	}
	h.Content, h.Raw = a, a.GetValue()
	if m, err := a.UnmarshalNew(); err == nil {
		h.Message, h.Raw = m, nil
		if h.Name == "" {
			h.Name = nameOf(a.GetTypeUrl(), m)
		}
	}
	if h.Type == "" {
		h.Type = a.GetTypeUrl()
	}
	return h
}

// asSent takes away what Envoy writes into a dump and no server sends: the weight 0 of a locality that has none.
func (h Held) asSent() Held {
	if a, ok := h.Message.(*endpointv3.ClusterLoadAssignment); ok {
		for _, l := range a.GetEndpoints() {
			if l.GetLoadBalancingWeight().GetValue() == 0 {
				l.LoadBalancingWeight = nil
			}
		}
	}
	return h
}

// FromDump reads Envoy's config dump.
func FromDump(d *adminv3.ConfigDump) *Process {
	p := &Process{}
	for _, part := range d.GetConfigs() {
		m, err := part.UnmarshalNew()
		if err != nil {
			continue // of another Envoy
		}
		if b, ok := m.(*adminv3.BootstrapConfigDump); ok {
			p.Node = b.GetBootstrap().GetNode()
		}
		p.walk(m.ProtoReflect(), Held{})
	}
	seen := map[[2]string]bool{}
	all := p.Resources
	p.Resources = all[:0]
	for _, h := range all { // of several states the first counts: the active one
		if id := [2]string{h.Type, h.Name}; !seen[id] {
			seen[id] = true
			p.Resources = append(p.Resources, h)
		}
	}
	return p
}

// sectionTypes are the types of the resources in the parts of a dump.
var sectionTypes = map[protoreflect.Name]string{
	"ClustersConfigDump": cds.Type.TypeURL(), "EcdsConfigDump": ecds.Type.TypeURL(), "EndpointsConfigDump": eds.Type.TypeURL(),
	"ListenersConfigDump": lds.Type.TypeURL(), "ScopedRoutesConfigDump": srds.Type.TypeURL(), "RoutesConfigDump": rds.Type.TypeURL(),
	"SecretsConfigDump": sds.Type.TypeURL(),
}

// walk finds the resources in a part of a dump, with what stands beside or above them, and those of which there
// is only an error. It says whether there was any.
func (p *Process) walk(m protoreflect.Message, at Held) (found bool) {
	switch v := m.Interface().(type) {
	case *anypb.Any:
		if _, known := wellknown.ByTypeURL(v.GetTypeUrl()); known {
			at.Type = ""
			p.Resources = append(p.Resources, at.with(v).asSent())
			return true
		}
		return false
	case *adminv3.UpdateFailureState:
		return false
	}
	if url := sectionTypes[m.Descriptor().Name()]; url != "" {
		at.Type = url
	}
	own := at
	own.Error = nil
	own.read(m)
	fields := m.Descriptor().Fields() // in their order: what is active comes before what warms
	for i := range fields.Len() {
		switch fd := fields.Get(i); {
		case fd.Message() == nil || fd.IsMap() || !m.Has(fd):
		case fd.IsList():
			inner := own
			inner.Name = "" // is that of a list of scopes
			for j := range m.Get(fd).List().Len() {
				found = p.walk(m.Get(fd).List().Get(j).Message(), inner) || found
			}
		default:
			inner := own
			if own.Error == nil {
				inner.Error = at.Error
			}
			found = p.walk(m.Get(fd).Message(), inner) || found
		}
	}
	if !found && own.Error != nil && own.Name != "" {
		p.Resources = append(p.Resources, own)
		return true
	}
	return found
}

// read takes what a message says of the resource in it.
func (h *Held) read(m protoreflect.Message) {
	text := func(name protoreflect.Name, to *string) {
		if fd := m.Descriptor().Fields().ByName(name); fd != nil && fd.Kind() == protoreflect.StringKind && m.Has(fd) {
			*to = m.Get(fd).String()
		}
	}
	text("version_info", &h.Version)
	if m.Descriptor().ParentFile().Package() == "envoy.admin.v3" {
		text("name", &h.Name)
	}
	if fd := m.Descriptor().Fields().ByName("client_status"); fd != nil && fd.Enum() != nil {
		if v := fd.Enum().Values().ByNumber(m.Get(fd).Enum()); v != nil {
			h.Status = strings.TrimPrefix(string(v.Name()), "CLIENT_")
		}
	}
	message := func(name protoreflect.Name) proto.Message {
		if fd := m.Descriptor().Fields().ByName(name); fd != nil && fd.Message() != nil && !fd.IsList() && m.Has(fd) {
			return m.Get(fd).Message().Interface()
		}
		return nil
	}
	if t, ok := message("last_updated").(*timestamppb.Timestamp); ok {
		h.Updated = timeOf(t)
	}
	if e, ok := message("error_state").(*adminv3.UpdateFailureState); ok {
		h.Error = e
	}
}

// ReadProcess reads a config dump, or an answer of the client status service, in JSON. An error quotes no value.
func ReadProcess(text []byte) (*Process, error) {
	var d struct {
		Configs, Config json.RawMessage
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	if err := AffordableText(text); err != nil {
		return nil, err
	}
	if json.Unmarshal(text, &d) != nil || d.Configs == nil && d.Config == nil {
		return nil, errors.New("neither a config dump with configs, nor an answer of the client status service with config")
	}
	if d.Configs == nil {
		resp := &statusv3.ClientStatusResponse{}
		if _, err := parseDump(text, resp); err != nil {
			return nil, err
		}
		return FromStatus(resp), nil
	}
	m := &adminv3.ConfigDump{}
	if _, err := parseDump(text, m); err != nil {
		return nil, err
	}
	return FromDump(m), nil
}
