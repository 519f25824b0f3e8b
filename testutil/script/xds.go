package script

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/xdswatch/xdswatch/resource"
)

// urls are the resource types that scripts know, by short name. They have the type URLs
// of Envoy's, but a message of their own: field 1 is the name, field 2 the value, which is
// refused if it begins with "bad:" (the rest is the error) and lets the decoder panic if
// it is "panic".
var urls = map[string]string{
	"cds":  "envoy.config.cluster.v3.Cluster",
	"eds":  "envoy.config.endpoint.v3.ClusterLoadAssignment",
	"lds":  "envoy.config.listener.v3.Listener",
	"rds":  "envoy.config.route.v3.RouteConfiguration",
	"leds": "envoy.config.endpoint.v3.LbEndpoint", // named by the wrapper alone
	"vhds": "envoy.config.route.v3.VirtualHost",
	"sds":  "envoy.extensions.transport_sockets.tls.v3.Secret",
	"foo":  "test.Foo", // named by the wrapper alone
	"bar":  "test.Bar",
}

// Kinds makes the types, by short name.
func Kinds() map[string]resource.AnyType {
	kinds := map[string]resource.AnyType{}
	for short, name := range urls {
		o := resource.Options{NameField: 1, FullState: short == "cds" || short == "lds"}
		if short == "foo" || short == "leds" {
			o.NameField = 0
		}
		kinds[short] = resource.Custom(resource.TypePrefix+name, o, decode)
	}
	return kinds
}

// TypeURL is the type URL of a short name.
func TypeURL(short string) string { return resource.TypePrefix + urls[short] }

// Short is the short name of a type URL.
func Short(typeURL string) string {
	for short, name := range urls {
		if resource.TypePrefix+name == typeURL {
			return short
		}
	}
	return typeURL
}

func decode(_ resource.Source, b []byte) (string, error) {
	var m corev3.HeaderValue // whose fields are numbered so
	if proto.Unmarshal(b, &m) != nil {
		return "", errors.New("does not parse")
	}
	if reason, bad := strings.CutPrefix(m.Value, "bad:"); bad {
		return "", errors.New(reason)
	}
	if m.Value == "panic" {
		panic("the decoder does not like it")
	}
	return m.Value, nil
}

// payload is the wire form of a message; swapped puts its fields in another order.
func payload(name, value string, swapped bool) []byte {
	var first, second []byte
	if name != "" {
		first = protowire.AppendTag(first, 1, protowire.BytesType)
		first = protowire.AppendString(first, name)
	}
	second = protowire.AppendTag(second, 2, protowire.BytesType)
	second = protowire.AppendString(second, value)
	if swapped {
		first, second = second, first
	}
	return append(first, second...)
}

// item is a word of recv: how an entry of a response is written.
//
//	a=1            resource a with value 1; in delta its version is 1 too
//	a@7=1          the same with version 7; a@=1 with an empty one
//	a~             an entry without a body; a@7~ with a version
//	w:a=1          wrapped in a Resource (SotW); w:a/b=1 with the inner name b
//	?=1            without a name
//	()             an entry of no type, with nothing in it (SotW); (#) a wrapper that does not parse
//	bar:a=1        of another type than the response; w:bar:a=1 wrapped
//	#              bytes that do not parse; w:a# with a name around them
//	<a?b=c>=1      a name with characters that mean something here
//	-a             removed (delta); -a{env=prod} by name and constraints
//	!a=5:text      an error of that code for the resource
//
// Behind it may stand
//
//	%              the fields of the message are in another order
//	^10s           a time to live
//	&b             another name of the resource
//	$              cache_control: do not cache
//	[text]         metadata
//	{env=prod}     wrapped, with the constraint that a parameter has a value; {env} that
//	               it exists; {!env} not; {env=prod,!version} both; {} none
type item struct {
	wrapped, bodiless, broken, swapped bool

	typ, inner, value string
	around            *discoveryv3.Resource // without the payload
}

func parseItem(word string) item {
	word, constraints, varies := cutConstraints(word)
	it := parseNamed(word)
	if varies {
		it.wrapped = true
		it.around.ResourceName = &discoveryv3.ResourceName{Name: it.around.Name, DynamicParameterConstraints: constraints}
		it.around.Name = ""
	}
	return it
}

func parseNamed(word string) item {
	before, rest, _ := strings.Cut(word, "<")
	name, after, ok := strings.Cut(rest, ">")
	if !ok {
		return parsePlain(word)
	}
	it := parsePlain(before + after)
	it.around.Name, it.inner = name, name
	return it
}

func parsePlain(word string) item {
	r := new(discoveryv3.Resource)
	it := item{around: r}
	word, metadata, ok := strings.Cut(strings.TrimSuffix(word, "]"), "[")
	if ok {
		text := map[string]*structpb.Value{"text": structpb.NewStringValue(metadata)}
		r.Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"script": {Fields: text}}}
	}
	word, noCache := strings.CutSuffix(word, "$")
	if noCache {
		r.CacheControl = &discoveryv3.Resource_CacheControl{DoNotCache: true}
	}
	word, aliases, ok := strings.Cut(word, "&")
	if ok {
		r.Aliases = strings.Split(aliases, "&")
	}
	word, ttl, ok := strings.Cut(word, "^")
	if ok {
		d, _ := time.ParseDuration(ttl)
		r.Ttl = durationpb.New(d)
	}
	word, it.swapped = strings.CutSuffix(word, "%")
	word, it.wrapped = strings.CutPrefix(word, "w:")
	if typ, rest, ok := strings.Cut(word, ":"); ok && urls[typ] != "" {
		it.typ, word = typ, rest
	}
	word, it.broken = strings.CutSuffix(word, "#")
	word, it.bodiless = strings.CutSuffix(word, "~")
	name, value, _ := strings.Cut(word, "=")
	name, version, versioned := strings.Cut(name, "@")
	it.value, r.Version = value, value
	if versioned {
		r.Version = version
	}
	r.Name, it.inner = name, name
	if outer, inner, ok := strings.Cut(name, "/"); ok && it.wrapped {
		r.Name, it.inner = outer, inner
	}
	if name == "?" {
		r.Name, it.inner = "", ""
	}
	return it
}

func (it item) any(typ string) *anypb.Any {
	if it.typ != "" {
		typ = it.typ
	}
	a := &anypb.Any{TypeUrl: TypeURL(typ), Value: payload(it.inner, it.value, it.swapped)}
	if it.broken {
		a.Value = []byte{0x0a, 0xff}
	}
	return a
}

func (it item) resource(typ string) *discoveryv3.Resource {
	if !it.bodiless {
		it.around.Resource = it.any(typ)
	}
	return it.around
}

// Attributes writes what stands beside a resource's value.
func Attributes(aliases []string, doNotCache bool, m *corev3.Metadata) string {
	var b strings.Builder
	if len(aliases) > 0 {
		fmt.Fprintf(&b, " aliases=%v", aliases)
	}
	if doNotCache {
		b.WriteString(" do-not-cache")
	}
	if m != nil {
		fmt.Fprintf(&b, " metadata=%q", m.GetFilterMetadata()["script"].GetFields()["text"].GetStringValue())
	}
	return b.String()
}

// Response makes the frame of a response out of the words after recv: for SotW
// "TYPE VERSION NONCE ITEM…", for delta "TYPE NONCE ITEM…". A hyphen alone is an empty
// version or nonce.
func Response(words []string, delta bool) ([]byte, error) {
	if delta {
		return deltaResponse(words)
	}
	if len(words) < 3 {
		return nil, errors.New("recv wants a type, a version and a nonce")
	}
	typ := words[0]
	r := &discoveryv3.DiscoveryResponse{TypeUrl: typeURLOf(typ), VersionInfo: text(words[1]), Nonce: text(words[2])}
	for _, w := range words[3:] {
		if w[0] == '!' {
			r.ResourceErrors = append(r.ResourceErrors, resourceError(w))
			continue
		}
		if a := oddEntry(w); a != nil {
			r.Resources = append(r.Resources, a)
			continue
		}
		it := parseItem(w)
		a := it.any(typ)
		if it.wrapped || it.bodiless {
			wrapper := it.resource(typ)
			if it.bodiless {
				wrapper.Version = ""
			}
			var err error
			if a, err = anypb.New(wrapper); err != nil {
				return nil, err
			}
		}
		r.Resources = append(r.Resources, a)
	}
	return proto.Marshal(r)
}

// oddEntry is an entry that is no item; nil of another word.
func oddEntry(word string) *anypb.Any {
	switch word {
	case "()":
		return &anypb.Any{}
	case "(#)":
		return &anypb.Any{TypeUrl: wrapperURL, Value: []byte{0}}
	}
	return nil
}

const wrapperURL = resource.TypePrefix + "envoy.service.discovery.v3.Resource"

func deltaResponse(words []string) ([]byte, error) {
	if len(words) < 2 {
		return nil, errors.New("recv wants a type and a nonce")
	}
	typ := words[0]
	r := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: typeURLOf(typ), Nonce: text(words[1])}
	for _, w := range words[2:] {
		switch {
		case w[0] == '!':
			r.ResourceErrors = append(r.ResourceErrors, resourceError(w))
		case w[0] == '-':
			if name, c, ok := cutConstraints(w[1:]); ok {
				r.RemovedResourceNames = append(r.RemovedResourceNames, &discoveryv3.ResourceName{Name: name, DynamicParameterConstraints: c})
			} else {
				r.RemovedResources = append(r.RemovedResources, name)
			}
		default:
			r.Resources = append(r.Resources, parseItem(w).resource(typ))
		}
	}
	return proto.Marshal(r)
}

// typeURLOf lets a script leave the type out of a response by "-".
func typeURLOf(typ string) string {
	if typ == "-" {
		return ""
	}
	return TypeURL(typ)
}

func text(word string) string {
	if word == "-" {
		return ""
	}
	return word
}

func resourceError(word string) *discoveryv3.ResourceError {
	word, constraints, _ := cutConstraints(word)
	name, rest, _ := strings.Cut(word[1:], "=")
	if quoted, behind, ok := strings.Cut(word[1:], ">="); ok && word[1] == '<' {
		name, rest = quoted[1:], behind
	}
	code, message, _ := strings.Cut(rest, ":")
	n, _ := strconv.Atoi(code)
	return &discoveryv3.ResourceError{
		ResourceName: &discoveryv3.ResourceName{Name: name, DynamicParameterConstraints: constraints},
		ErrorDetail:  &status.Status{Code: int32(n), Message: message},
	}
}

// Request writes a request as a line; stream is the number of the stream.
func Request(stream int, frame []byte, delta bool) string {
	var r interface {
		proto.Message
		GetTypeUrl() string
		GetResponseNonce() string
		GetNode() *corev3.Node
		GetErrorDetail() *status.Status
	} = new(discoveryv3.DiscoveryRequest)
	if delta {
		r = new(discoveryv3.DeltaDiscoveryRequest)
	}
	if err := proto.Unmarshal(frame, r); err != nil {
		return fmt.Sprintf("-> %d does not parse: %v", stream, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-> %d %s", stream, Short(r.GetTypeUrl()))
	switch r := r.(type) {
	case *discoveryv3.DiscoveryRequest:
		fmt.Fprintf(&b, " names=[%s]", asked(r.ResourceNames, r.ResourceLocators))
		quoted(&b, "version", r.VersionInfo)
	case *discoveryv3.DeltaDiscoveryRequest:
		subscriptions(&b, r)
	}
	quoted(&b, "nonce", r.GetResponseNonce())
	ending(&b, r.GetNode(), r.GetErrorDetail())
	return b.String()
}

func subscriptions(b *strings.Builder, r *discoveryv3.DeltaDiscoveryRequest) {
	fmt.Fprintf(b, " sub=[%s]", asked(r.ResourceNamesSubscribe, r.ResourceLocatorsSubscribe))
	if gone := asked(r.ResourceNamesUnsubscribe, r.ResourceLocatorsUnsubscribe); gone != "" {
		fmt.Fprintf(b, " unsub=[%s]", gone)
	}
	if len(r.InitialResourceVersions) > 0 {
		var init []string
		for name, version := range r.InitialResourceVersions {
			init = append(init, name+":"+version)
		}
		slices.Sort(init)
		fmt.Fprintf(b, " init={%s}", strings.Join(init, " "))
	}
}

func quoted(b *strings.Builder, key, value string) {
	if value != "" {
		fmt.Fprintf(b, " %s=%q", key, value)
	}
}

func ending(b *strings.Builder, node *corev3.Node, detail *status.Status) {
	if node != nil {
		b.WriteString(" node")
	}
	for _, url := range slices.Sorted(maps.Keys(node.GetDynamicParameters())) {
		b.WriteString(" " + Short(url) + shown(node.DynamicParameters[url].GetParams()))
	}
	if detail != nil {
		fmt.Fprintf(b, " error=%d:%q", detail.Code, detail.Message)
	}
}
