package csds

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/internal/updatestate"
	"github.com/xdswatch/xdswatch/resource/resourcejson"
)

type row = statusv3.ClientConfig_GenericXdsConfig

// answer is a response that is being made.
type answer struct {
	config  *Config
	exclude bool // contents

	configs []*statusv3.ClientConfig
	shown   int                  // bytes of contents
	rows    []row                // made, and not used yet
	look    *resourcejson.Writer // for what is secret
}

// client adds the configs of a client: one for each scope that has something, and one at least.
func (a *answer) client(c named) {
	// CSDS-b: the node is that of the wire.
	node := c.Node()
	scopes := map[string]*statusv3.ClientConfig{}
	// CSDS-1: what the client has.
	for s := range c.States(a.config.Types...) {
		if updatestate.IsCollection(s.Name) && s.Status == statusACKED {
			continue // it is there, and is no resource itself
		}
		of := scopes[s.Scope]
		if of == nil {
			of = &statusv3.ClientConfig{Node: node, ClientScope: updatestate.Valid(join(c.name, s.Scope))}
			scopes[s.Scope] = of
		}
		of.GenericXdsConfigs = append(of.GenericXdsConfigs, a.row(s))
	}
	if len(scopes) == 0 {
		scopes[""] = &statusv3.ClientConfig{Node: node, ClientScope: updatestate.Valid(c.name)}
	}
	// CSDS-a: a config for each scope.
	for _, name := range slices.Sorted(maps.Keys(scopes)) {
		a.configs = append(a.configs, scopes[name])
	}
}

func join(name, scope string) string {
	if name == "" || scope == "" {
		return name + scope
	}
	return name + "/" + scope
}

const statusACKED = client.Status("ACKED")

// rowsAtATime are made together: so many allocations less.
const rowsAtATime = 256

func (a *answer) row(s client.State) *row {
	if len(a.rows) == 0 {
		a.rows = make([]row, rowsAtATime)
	}
	r := &a.rows[0]
	a.rows = a.rows[1:]
	r.TypeUrl, r.Name, r.VersionInfo = s.Type, updatestate.Valid(s.Name), updatestate.Valid(s.Version)
	r.ClientStatus = updatestate.Status(s)
	// CSDS-b: no time where there was no update.
	r.LastUpdated = updatestate.Timestamp(s.Updated)
	// CSDS-2: the value is the one that was accepted last.
	if s.Raw != nil {
		r.XdsConfig = a.contents(contentType(s), s.Raw)
	}
	r.ErrorState = a.errorState(s)
	return r
}

// locatorType is what a server sends in place of a resource that is elsewhere.
const locatorType = "type.googleapis.com/xds.core.v3.ResourceLocator"

func contentType(s client.State) string {
	if s.Redirect != "" {
		return locatorType
	}
	return s.Type
}

// errorState is what is wrong with a resource.
func (a *answer) errorState(s client.State) *adminv3.UpdateFailureState {
	e := updatestate.Error(s)
	if e != nil && s.Refused != nil && s.Refused.Raw != nil {
		e.FailedConfiguration = a.contents(s.Refused.Type, s.Refused.Raw)
	}
	return e
}

// contents are those of a resource without secrets; nil if they are not to be shown.
func (a *answer) contents(typeURL string, raw []byte) *anypb.Any {
	// CSDS-c: what is left out.
	if a.exclude || len(a.config.Contents) > 0 && !slices.Contains(a.config.Contents, typeURL) {
		return nil
	}
	shown := &anypb.Any{TypeUrl: typeURL, Value: raw}
	if a.look.Hides(typeURL, raw) {
		m, err := shown.UnmarshalNew()
		if err != nil {
			return nil // nobody can tell what is secret in it
		}
		resourcejson.Redact(m)
		if shown.Value, err = (proto.MarshalOptions{AllowPartial: true, Deterministic: true}).Marshal(m); err != nil {
			return nil
		}
	}
	if most := a.config.MaxContents; most > 0 && a.shown+len(shown.Value) > most {
		return nil
	}
	a.shown += len(shown.Value)
	return shown
}

// other adds the configs of another service, by the same rules.
// CSDS-e
func (a *answer) other(resp *statusv3.ClientStatusResponse) {
	for _, c := range resp.GetConfig() {
		own := &statusv3.ClientConfig{Node: c.GetNode(), ClientScope: c.GetClientScope()}
		for _, r := range c.GetGenericXdsConfigs() {
			if len(a.config.Types) > 0 && !slices.Contains(a.config.Types, r.GetTypeUrl()) {
				continue
			}
			r := proto.CloneOf(r)
			r.XdsConfig = a.again(r.GetXdsConfig())
			if r.ErrorState != nil {
				r.ErrorState.FailedConfiguration = a.again(r.ErrorState.GetFailedConfiguration())
			}
			// CSDS-b: gRPC's own service says the year 1.
			if t := r.GetLastUpdated(); t != nil && t.AsTime().Year() == 1 {
				r.LastUpdated = nil
			}
			own.GenericXdsConfigs = append(own.GenericXdsConfigs, r)
		}
		sortRows(own.GenericXdsConfigs)
		a.configs = append(a.configs, own)
	}
}

func (a *answer) again(contents *anypb.Any) *anypb.Any {
	if contents == nil {
		return nil
	}
	return a.contents(contents.GetTypeUrl(), contents.GetValue())
}

func sortRows(rows []*row) {
	slices.SortStableFunc(rows, func(x, y *row) int {
		return cmp.Or(strings.Compare(x.GetTypeUrl(), y.GetTypeUrl()), strings.Compare(x.GetName(), y.GetName()))
	})
}

// response is the answer.
func (a *answer) response() *statusv3.ClientStatusResponse {
	// CSDS-g: there is one config at least, since readers take none for an error.
	if !a.config.Merge && len(a.configs) > 0 {
		return &statusv3.ClientStatusResponse{Config: a.configs}
	}
	// CSDS-a: one config for all.
	one := &statusv3.ClientConfig{}
	for i, c := range a.configs {
		if i == 0 {
			one.Node = c.GetNode()
		}
		one.GenericXdsConfigs = append(one.GenericXdsConfigs, c.GetGenericXdsConfigs()...)
	}
	if len(a.configs) > 1 {
		sortRows(one.GenericXdsConfigs)
	}
	return &statusv3.ClientStatusResponse{Config: []*statusv3.ClientConfig{one}}
}
