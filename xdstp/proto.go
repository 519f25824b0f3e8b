package xdstp

import (
	"fmt"
	"slices"
	"unicode/utf8"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// NameFromProto reads a name in its structured form, which may come from a server. The
// error is an [*Error] with its Field set: for a nil message, a resource type that is
// empty or no segment, and for a glob, which a ResourceName cannot be (xRFC TP1).
func NameFromProto(m *xdscorev3.ResourceName) (Name, error) {
	const field = "ResourceName"
	if m == nil {
		return Name{}, fieldFault(field, PartMessage, "is missing")
	}
	n := Name{
		Authority: m.GetAuthority(),
		Type:      m.GetResourceType(),
		ID:        m.GetId(),
		Params:    paramsFromProto(m.GetContext()),
	}
	if err := n.checkType(field); err != nil {
		return Name{}, err
	}
	if n.IsGlob() {
		return Name{}, fieldFault(field+".id", PartID, globReason)
	}
	return n, nil
}

// Proto returns the structured form of the name. The error is an [*Error]: a glob and a name
// that is not valid have none, nor has a part that is not UTF-8.
func (n Name) Proto() (*xdscorev3.ResourceName, error) {
	const field = "ResourceName"
	if err := n.Validate(); err != nil {
		return nil, err
	}
	if n.IsGlob() {
		return nil, globFault(n.String())
	}
	if err := n.checkUTF8(field, "context"); err != nil {
		return nil, err
	}
	return &xdscorev3.ResourceName{
		Authority:    n.Authority,
		ResourceType: n.Type,
		Id:           n.ID,
		Context:      paramsToProto(n.Params),
	}, nil
}

// LocatorFromProto reads a locator in its structured form, which may come from a server.
// The error is an [*Error] with its Field set: for a message that is nil or lacks a
// directive, an undefined scheme, a directive given twice, alternatives nested deeper than
// eight, and a resource type that is empty or no segment. The resource type of a file is
// not looked at.
//
// xRFC TP1 has a ResourceLocator with one field, "string resource_locator = 1". A decoder
// keeps that as an unknown field, because the scheme that has its number now is of another
// wire type; a message that has it is read by it alone.
func LocatorFromProto(m *xdscorev3.ResourceLocator) (Locator, error) {
	return locatorFromProto(m, locatorField, 0)
}

const locatorField = "ResourceLocator"

func locatorFromProto(m *xdscorev3.ResourceLocator, field string, depth int) (Locator, error) {
	if m == nil {
		return Locator{}, fieldFault(field, PartMessage, "is missing")
	}
	// REDIR-1: the two forms have field 1 with different wire types.
	if text, ok := textForm(m.ProtoReflect().GetUnknown()); ok {
		return locatorFromText(text, field+".resource_locator", depth)
	}
	l, err := partsFromProto(m, field)
	if err != nil {
		return Locator{}, err
	}
	for i, m := range m.GetDirectives() {
		at := fmt.Sprintf("%s.directives[%d]", field, i)
		d, err := directiveFromProto(m, at, depth)
		if err != nil {
			return Locator{}, err
		}
		if hasKind(l.Directives, d) {
			return Locator{}, fieldFault(at, PartDirectives, "is repeated")
		}
		l.Directives = append(l.Directives, d)
	}
	return l, nil
}

// textForm finds the last field 1 with the wire type of a string.
func textForm(unknown []byte) (text string, ok bool) {
	for len(unknown) > 0 {
		num, typ, n := protowire.ConsumeField(unknown)
		if n < 0 {
			break
		}
		if num == 1 && typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(unknown)
			value, _ := protowire.ConsumeBytes(unknown[tag:])
			text, ok = string(value), true
		}
		unknown = unknown[n:]
	}
	return text, ok
}

func locatorFromText(text, field string, depth int) (Locator, error) {
	if !utf8.ValidString(text) {
		return Locator{}, fieldFault(field, PartMessage, notUTF8)
	}
	l, err := reader{lastWins: true}.locator(text, depth)
	if err != nil {
		return Locator{}, &Error{Field: field, Part: PartMessage, Reason: "is no locator", Err: err}
	}
	return l, nil
}

// partsFromProto reads all but the directives.
func partsFromProto(m *xdscorev3.ResourceLocator, field string) (Locator, error) {
	l := Locator{Name: Name{ID: m.GetId()}}
	switch m.GetScheme() {
	case xdscorev3.ResourceLocator_XDSTP:
		l.Scheme = SchemeXDSTP
	case xdscorev3.ResourceLocator_HTTP:
		l.Scheme = SchemeHTTP
	case xdscorev3.ResourceLocator_FILE:
		l.Scheme = SchemeFile
		return l, l.checkFile(m, field)
	default:
		reason := fmt.Sprintf("%d is not defined", m.GetScheme())
		return Locator{}, fieldFault(field+".scheme", PartScheme, reason)
	}
	l.Name.Authority, l.Name.Type = m.GetAuthority(), m.GetResourceType()
	l.Name.Params = paramsFromProto(exactContext(m))
	return l, l.Name.checkType(field)
}

// checkFile refuses what the text of a file cannot say.
func (l Locator) checkFile(m *xdscorev3.ResourceLocator, field string) error {
	switch {
	case l.Name.ID == "":
		return fieldFault(field+".id", PartID, "is empty")
	case m.GetAuthority() != "":
		return fieldFault(field+".authority", PartAuthority, "a file has none")
	case len(exactContext(m).GetParams()) > 0:
		return fieldFault(field+".exact_context", PartParams, "a file has none")
	}
	return nil
}

// exactContext is the getter that bears a typed nil.
func exactContext(m *xdscorev3.ResourceLocator) *xdscorev3.ContextParams {
	if c, ok := m.GetContextParamSpecifier().(*xdscorev3.ResourceLocator_ExactContext); ok && c != nil {
		return c.ExactContext
	}
	return nil
}

func directiveFromProto(m *xdscorev3.ResourceLocator_Directive, field string, depth int) (Directive, error) {
	switch d := m.GetDirective().(type) {
	case *xdscorev3.ResourceLocator_Directive_Alt:
		if d == nil {
			break
		}
		if depth == maxAltDepth {
			return Directive{}, fieldFault(field, PartDirectives, tooDeep)
		}
		alt, err := locatorFromProto(d.Alt, field+".alt", depth+1)
		return Directive{Alt: &alt}, err
	case *xdscorev3.ResourceLocator_Directive_Entry:
		if d != nil {
			return Directive{Entry: d.Entry}, nil
		}
	}
	return Directive{}, fieldFault(field, PartDirectives, "has neither alt nor entry")
}

// Proto returns the structured form of the locator. That of a file has no resource type, as
// in Envoy, though the published rules of validation ask for one. The error is an
// [*Error]: a locator that is not valid has no such form, nor has a part that is not UTF-8.
func (l Locator) Proto() (*xdscorev3.ResourceLocator, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if err := l.checkUTF8(locatorField); err != nil {
		return nil, err
	}
	return l.proto(), nil
}

func (l Locator) proto() *xdscorev3.ResourceLocator {
	m := &xdscorev3.ResourceLocator{
		Scheme:       l.Scheme.proto(),
		Authority:    l.Name.Authority,
		ResourceType: l.Name.Type,
		Id:           l.Name.ID,
	}
	if c := paramsToProto(l.Name.Params); c != nil {
		m.ContextParamSpecifier = &xdscorev3.ResourceLocator_ExactContext{ExactContext: c}
	}
	for _, d := range l.Directives {
		m.Directives = append(m.Directives, d.proto())
	}
	return m
}

func (s Scheme) proto() xdscorev3.ResourceLocator_Scheme {
	switch s {
	case SchemeHTTP:
		return xdscorev3.ResourceLocator_HTTP
	case SchemeFile:
		return xdscorev3.ResourceLocator_FILE
	case SchemeXDSTP:
	}
	return xdscorev3.ResourceLocator_XDSTP
}

func (d Directive) proto() *xdscorev3.ResourceLocator_Directive {
	m := new(xdscorev3.ResourceLocator_Directive)
	if d.Alt != nil {
		m.Directive = &xdscorev3.ResourceLocator_Directive_Alt{Alt: d.Alt.proto()}
	} else {
		m.Directive = &xdscorev3.ResourceLocator_Directive_Entry{Entry: d.Entry}
	}
	return m
}

func paramsFromProto(m *xdscorev3.ContextParams) []Param {
	if len(m.GetParams()) == 0 {
		return nil
	}
	params := make([]Param, 0, len(m.GetParams()))
	for key, value := range m.GetParams() {
		params = append(params, Param{key, value})
	}
	slices.SortFunc(params, compareParams)
	return params
}

func paramsToProto(params []Param) *xdscorev3.ContextParams {
	if len(params) == 0 {
		return nil
	}
	m := &xdscorev3.ContextParams{Params: make(map[string]string, len(params))}
	for _, p := range params {
		m.Params[p.Key] = p.Value
	}
	return m
}
