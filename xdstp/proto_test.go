package xdstp

import (
	"errors"
	"strings"
	"testing"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
)

func contextOf(pairs ...string) *xdscorev3.ContextParams {
	m := &xdscorev3.ContextParams{Params: make(map[string]string)}
	for i := 0; i < len(pairs); i += 2 {
		m.Params[pairs[i]] = pairs[i+1]
	}
	return m
}

func exact(pairs ...string) *xdscorev3.ResourceLocator_ExactContext {
	return &xdscorev3.ResourceLocator_ExactContext{ExactContext: contextOf(pairs...)}
}

func entry(name string) *xdscorev3.ResourceLocator_Directive {
	return &xdscorev3.ResourceLocator_Directive{Directive: &xdscorev3.ResourceLocator_Directive_Entry{Entry: name}}
}

func alt(m *xdscorev3.ResourceLocator) *xdscorev3.ResourceLocator_Directive {
	return &xdscorev3.ResourceLocator_Directive{Directive: &xdscorev3.ResourceLocator_Directive_Alt{Alt: m}}
}

func TestNameProto(t *testing.T) {
	tests := []struct {
		name string
		want *xdscorev3.ResourceName
	}{
		{"xdstp:///T", &xdscorev3.ResourceName{ResourceType: "T"}},
		{"xdstp://a%2F/T/x%3Ay/z?b=2&a=%26", &xdscorev3.ResourceName{
			Authority: "a/", ResourceType: "T", Id: "x:y/z", Context: contextOf("a", "&", "b", "2"),
		}},
		{"xdstp://a/T/x?=", &xdscorev3.ResourceName{Authority: "a", ResourceType: "T", Id: "x", Context: contextOf("", "")}},
	}
	for _, tt := range tests {
		n := mustParse(t, tt.name)
		m, err := n.Proto()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, m, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		again, err := NameFromProto(m)
		if err != nil || !again.Equal(n) {
			t.Errorf("%s is read back as %s, %v", n, again, err)
		}
	}
}

func TestNameFromProtoErrors(t *testing.T) {
	tests := []struct {
		message *xdscorev3.ResourceName
		part    Part
		text    string
	}{
		{nil, PartMessage, "xdstp: ResourceName: is missing"},
		{&xdscorev3.ResourceName{Id: "x"}, PartType, "xdstp: ResourceName.resource_type: is empty"},
		{&xdscorev3.ResourceName{ResourceType: "a/b"}, PartType, `xdstp: ResourceName.resource_type: "a/b" holds '/'`},
		{&xdscorev3.ResourceName{ResourceType: "T", Id: "x/*"}, PartID, "xdstp: ResourceName.id: is a glob, which names no single resource"},
	}
	for _, tt := range tests {
		_, err := NameFromProto(tt.message)
		checkFieldFault(t, err, tt.part, tt.text)
	}
}

func checkFieldFault(t *testing.T, err error, part Part, text string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Fatalf("error %v, want an *Error", err)
	}
	if e.Part != part || e.Error() != text {
		t.Errorf("%s: %s; want %s: %s", e.Part, e, part, text)
	}
}

func TestNameProtoErrors(t *testing.T) {
	for name, reason := range map[string]string{
		"xdstp://a/T/foo/*":    "is a glob",
		"xdstp://%FF/T/x":      "ResourceName.authority: is not UTF-8",
		"xdstp://a/T\xff/x":    "ResourceName.resource_type: is not UTF-8",
		"xdstp://a/T/%FF":      "ResourceName.id: is not UTF-8",
		"xdstp://a/T/x?a=%FF":  `ResourceName.context.params["a"]: is not UTF-8`,
		"xdstp://a/T/x?%FF=a":  `ResourceName.context.params["\xff"]: is not UTF-8`,
		"xdstp://a/T/%E4%BD?a": "ResourceName.id: is not UTF-8",
	} {
		if m, err := mustParse(t, name).Proto(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s became %v, %v; want an error with %q", name, m, err, reason)
		}
	}
	if m, err := (Name{}).Proto(); err == nil {
		t.Errorf("no name became %v", m)
	}
}

func TestLocatorProto(t *testing.T) {
	tests := []struct {
		url  string
		want *xdscorev3.ResourceLocator
	}{
		{"xdstp:///T", &xdscorev3.ResourceLocator{ResourceType: "T"}},
		{"xdstp://a/T/foo/*?b=2&a=1", &xdscorev3.ResourceLocator{
			Authority: "a", ResourceType: "T", Id: "foo/*", ContextParamSpecifier: exact("a", "1", "b", "2"),
		}},
		{"http://a/T/x#entry=e", &xdscorev3.ResourceLocator{
			Scheme: xdscorev3.ResourceLocator_HTTP, Authority: "a", ResourceType: "T", Id: "x",
			Directives: []*xdscorev3.ResourceLocator_Directive{entry("e")},
		}},
		{"file:///a/b#entry=", &xdscorev3.ResourceLocator{
			Scheme: xdscorev3.ResourceLocator_FILE, Id: "a/b",
			Directives: []*xdscorev3.ResourceLocator_Directive{entry("")},
		}},
		{"xdstp://a/T/x#entry=e,alt=xdstp://b/U?c=d%23alt=xdstp://c/V", &xdscorev3.ResourceLocator{
			Authority: "a", ResourceType: "T", Id: "x",
			Directives: []*xdscorev3.ResourceLocator_Directive{entry("e"), alt(&xdscorev3.ResourceLocator{
				Authority: "b", ResourceType: "U", ContextParamSpecifier: exact("c", "d"),
				Directives: []*xdscorev3.ResourceLocator_Directive{alt(&xdscorev3.ResourceLocator{Authority: "c", ResourceType: "V"})},
			})},
		}},
	}
	for _, tt := range tests {
		l, err := ParseLocator(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		m, err := l.Proto()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, m, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.url, diff)
		}
		again, err := LocatorFromProto(m)
		if err != nil || !again.Equal(l) {
			t.Errorf("%s is read back as %s, %v", l, again, err)
		}
	}
}

func TestLocatorFromProtoErrors(t *testing.T) {
	const file = xdscorev3.ResourceLocator_FILE
	type directives = []*xdscorev3.ResourceLocator_Directive
	deep := &xdscorev3.ResourceLocator{ResourceType: "T"}
	for range maxAltDepth + 1 {
		deep = &xdscorev3.ResourceLocator{ResourceType: "T", Directives: directives{alt(deep)}}
	}
	ring := &xdscorev3.ResourceLocator{ResourceType: "T"}
	ring.Directives = directives{alt(ring)}
	eight := strings.Repeat(".directives[0].alt", maxAltDepth)
	tests := []struct {
		message *xdscorev3.ResourceLocator
		part    Part
		text    string
	}{
		{nil, PartMessage, "xdstp: ResourceLocator: is missing"},
		{&xdscorev3.ResourceLocator{}, PartType, "xdstp: ResourceLocator.resource_type: is empty"},
		{&xdscorev3.ResourceLocator{Scheme: 7, ResourceType: "T"}, PartScheme, "xdstp: ResourceLocator.scheme: 7 is not defined"},
		{&xdscorev3.ResourceLocator{ResourceType: "T#"}, PartType, `xdstp: ResourceLocator.resource_type: "T#" holds '#'`},
		{&xdscorev3.ResourceLocator{Scheme: file}, PartID, "xdstp: ResourceLocator.id: is empty"},
		{&xdscorev3.ResourceLocator{Scheme: file, Id: "x", Authority: "a"}, PartAuthority, "xdstp: ResourceLocator.authority: a file has none"},
		{
			&xdscorev3.ResourceLocator{Scheme: file, Id: "x", ContextParamSpecifier: exact("a", "b")}, PartParams,
			"xdstp: ResourceLocator.exact_context: a file has none",
		},
		{
			&xdscorev3.ResourceLocator{ResourceType: "T", Directives: directives{nil}}, PartDirectives,
			"xdstp: ResourceLocator.directives[0]: has neither alt nor entry",
		},
		{
			&xdscorev3.ResourceLocator{ResourceType: "T", Directives: directives{entry("a"), entry("b")}}, PartDirectives,
			"xdstp: ResourceLocator.directives[1]: is repeated",
		},
		{
			&xdscorev3.ResourceLocator{ResourceType: "T", Directives: directives{entry("a"), alt(nil)}}, PartMessage,
			"xdstp: ResourceLocator.directives[1].alt: is missing",
		},
		{
			&xdscorev3.ResourceLocator{ResourceType: "T", Directives: directives{
				{Directive: (*xdscorev3.ResourceLocator_Directive_Alt)(nil)},
			}}, PartDirectives, "xdstp: ResourceLocator.directives[0]: has neither alt nor entry",
		},
		{
			&xdscorev3.ResourceLocator{ResourceType: "T", Directives: directives{
				{Directive: (*xdscorev3.ResourceLocator_Directive_Entry)(nil)},
			}}, PartDirectives, "xdstp: ResourceLocator.directives[0]: has neither alt nor entry",
		},
		{
			&xdscorev3.ResourceLocator{ResourceType: "T", Directives: directives{alt(&xdscorev3.ResourceLocator{})}}, PartType,
			"xdstp: ResourceLocator.directives[0].alt.resource_type: is empty",
		},
		{deep, PartDirectives, "xdstp: ResourceLocator" + eight + ".directives[0]: alternatives are nested too deep"},
		{ring, PartDirectives, "xdstp: ResourceLocator" + eight + ".directives[0]: alternatives are nested too deep"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			_, err := LocatorFromProto(tt.message)
			checkFieldFault(t, err, tt.part, tt.text)
		})
	}
}

// What is legal but odd is read.
func TestLocatorFromProtoOdd(t *testing.T) {
	tests := []struct {
		message *xdscorev3.ResourceLocator
		want    string
	}{
		{&xdscorev3.ResourceLocator{
			ResourceType: "T", ContextParamSpecifier: (*xdscorev3.ResourceLocator_ExactContext)(nil),
		}, "xdstp:///T"},
		{&xdscorev3.ResourceLocator{
			ResourceType: "T", ContextParamSpecifier: &xdscorev3.ResourceLocator_ExactContext{},
		}, "xdstp:///T"},
		{&xdscorev3.ResourceLocator{
			Scheme: xdscorev3.ResourceLocator_FILE, Id: "x", ResourceType: "T",
		}, "file:///x"},
		{&xdscorev3.ResourceLocator{
			ResourceType: "T", Id: "x", ContextParamSpecifier: exact("xds.node.id", "n", "a", "@"),
		}, "xdstp:///T/x?a=@&xds.node.id=n"},
	}
	for _, tt := range tests {
		l, err := LocatorFromProto(tt.message)
		if err != nil || l.String() != tt.want {
			t.Errorf("%v is %s, %v; want %s", tt.message, l, err, tt.want)
		}
	}
}

func TestLocatorProtoErrors(t *testing.T) {
	for url, reason := range map[string]string{
		"xdstp://%FF/T/x":                        "ResourceLocator.authority: is not UTF-8",
		"http://a/T/x?a=%FF":                     `ResourceLocator.exact_context.params["a"]: is not UTF-8`,
		"file:///%FF":                            "ResourceLocator.id: is not UTF-8",
		"xdstp:///T#entry=%FF":                   "ResourceLocator.directives[0].entry: is not UTF-8",
		"xdstp:///T#entry=,alt=xdstp:///T/%25FF": "ResourceLocator.directives[1].alt.id: is not UTF-8",
	} {
		l, err := ParseLocator(url)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := l.Proto(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s became %v, %v; want an error with %q", url, m, err, reason)
		}
	}
}
