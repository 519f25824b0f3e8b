package bootstrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// document is one bootstrap while it is read: it collects faults and notices.
type document struct {
	source  string
	opts    *options
	yaml    bool // the text is YAML
	camel   bool // a field may be spelled in lowerCamelCase too, as in protobuf's JSON
	faults  []error
	faulty  map[string]bool // the paths of fields with a fault
	notices []string
	// clusters and servers are what a ConfigSource may refer to: static clusters, and the
	// servers of ads_config, which only a source of a watch may.
	clusters clusterIndex
	servers  []ManagementServer
	secrets  field                  // static_resources.secrets, which TLS contexts may name
	own      *secretList            // of them; nil until one is named
	files    map[string]*secretList // by path, that were read
}

// maxFaults is how many faults of a document are told, and how many notices.
const maxFaults = 1000

// told are the notices that are told. H-10: each is a line in a log.
func told(source string, notices []string) []string {
	if len(notices) > maxFaults {
		return append(notices[:maxFaults:maxFaults], fmt.Sprintf("%s: there are more than %d notices", source, maxFaults))
	}
	return notices
}

// err joins the faults.
func (d *document) err() error {
	// H-10: a document of two mebibytes may have a million.
	if len(d.faults) > maxFaults {
		more := &FieldError{Source: d.source, Reason: fmt.Sprintf("there are more than %d faults", maxFaults)}
		return errors.Join(append(d.faults[:maxFaults:maxFaults], more)...)
	}
	return errors.Join(d.faults...)
}

// field is a value of a document and where it stands. A nil value is absent or null,
// which protobuf's JSON takes for the same. The accessors record a fault and return the
// zero value if the value is of another type.
type field struct {
	doc    *document
	path   string
	val    any
	secret bool // neither this value nor what is inside may be shown
	void   bool // inside what is no object, which is the fault
}

// fault notes what is wrong with a field. What is said of it later only follows from that.
func (x field) fault(format string, args ...any) {
	if x.void || x.doc.faulty[x.path] {
		return
	}
	if len(x.doc.faults) >= maxFaults {
		x.doc.faults = append(x.doc.faults, nil) // which counts, and is not told
		return
	}
	if x.doc.faulty == nil {
		x.doc.faulty = map[string]bool{}
	}
	x.doc.faulty[x.path] = true
	e := &FieldError{Source: x.doc.source, Path: x.path, Reason: fmt.Sprintf(format, args...)}
	if !x.secret {
		e.Value = shown(x.val)
	}
	x.doc.faults = append(x.doc.faults, e)
}

func (x field) wrongType(want string) { x.fault("want %s, is %s", want, kind(x.val)) }

func (x field) notice(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	x.doc.notices = append(x.doc.notices, fmt.Sprintf("%s: %s: %s", x.doc.source, x.path, text))
}

// shown is a scalar as JSON, cut to a readable length; "" for anything else.
func shown(v any) string {
	const most = 80
	switch v.(type) {
	case nil, map[string]any, []any:
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if r := []rune(string(b)); len(r) > most {
		return string(r[:most]) + "…"
	}
	return string(b)
}

func (x field) present() bool { return x.val != nil }

func (x field) hidden() field {
	x.secret = true
	return x
}

// at is a member of an object; absent if x is.
func (x field) at(name string) field {
	whole := x.object()
	m, _ := x.val.(map[string]any)
	val := m[name]
	if val == nil && x.doc.camel {
		if other := lowerCamel(name); m[other] != nil {
			name, val = other, m[other]
		}
	}
	path := name
	if x.path != "" {
		path = x.path + "." + name
	}
	return field{doc: x.doc, path: path, val: val, secret: x.secret, void: x.void || x.present() && !whole}
}

// lowerCamel is the JSON name of a protobuf field.
func lowerCamel(name string) string {
	first, rest, _ := strings.Cut(name, "_")
	var b strings.Builder
	b.WriteString(first)
	for part := range strings.SplitSeq(rest, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// object is whether x is an object; it is no fault that x is absent.
func (x field) object() bool {
	_, ok := x.val.(map[string]any)
	if !ok && x.present() {
		// H-3: a key or token may stand in the place of what holds it.
		x.hidden().wrongType("an object")
	}
	return ok
}

// entry is object for a member of a list or map, where null is a fault too.
func (x field) entry() bool {
	if !x.present() {
		x.fault("want an object, is null")
	}
	return x.object()
}

// items are the elements of a list.
func (x field) items() []field {
	list, ok := x.val.([]any)
	// BOOTE-1: to protobuf's JSON in C++ a message alone is a list of one; Consul writes grpc_services so.
	if _, alone := x.val.(map[string]any); alone && x.doc.camel {
		return []field{x}
	}
	if !ok && x.present() {
		x.hidden().wrongType("a list") // H-3: see object
	}
	out := make([]field, len(list))
	for i, v := range list {
		out[i] = field{doc: x.doc, path: fmt.Sprintf("%s[%d]", x.path, i), val: v, secret: x.secret}
	}
	return out
}

// entries are the keys of a map in order, with their values.
func (x field) entries() ([]string, []field) {
	if !x.object() {
		return nil, nil
	}
	m := x.val.(map[string]any)
	keys := slices.Sorted(maps.Keys(m))
	out := make([]field, len(keys))
	for i, k := range keys {
		out[i] = field{doc: x.doc, path: fmt.Sprintf("%s[%q]", x.path, k), val: m[k], secret: x.secret}
	}
	return keys, out
}

// oneOf is the only one of some members that is present, and its name; "" if none is. It is
// a fault that another is present too.
func (x field) oneOf(names ...string) (name string, given field) {
	for _, other := range names {
		at := x.at(other)
		switch {
		case !at.present():
		case name != "":
			at.fault("is given beside %s; want one of them", name)
		default:
			name, given = other, at
		}
	}
	return name, given
}

func (x field) str() string {
	s, ok := x.val.(string)
	if !ok && x.present() {
		x.fault("want a string, is %s%s", kind(x.val), x.unquoted())
	}
	return s
}

// unquoted says how a text is written that YAML takes for something else.
func (x field) unquoted() string {
	if !x.doc.yaml {
		return ""
	}
	switch x.val.(type) {
	case bool:
		return ", which y, n, yes, no, on and off are in YAML too; put the text in quotes"
	case json.Number:
		return "; put the text in quotes"
	}
	return ""
}

// required is a string that must not be empty.
func (x field) required() string {
	switch x.val {
	case nil:
		x.fault("required")
	case "":
		x.fault("must not be empty")
	}
	return x.str()
}

func (x field) boolean() bool {
	b, ok := x.val.(bool)
	if !ok && x.present() {
		x.wrongType("a boolean")
	}
	return b
}

// enum is the name of a value of a protobuf enum, which may be written in another case, or as the number
// that names has it under. It is unset if absent or empty, and "" after a fault.
func (x field) enum(names map[string]string, unset string) string {
	switch v := x.val.(type) {
	case nil:
		return unset
	case string:
		for _, name := range names { // BOOTE-1: as Envoy reads them, strict_dns or STRICT_DNS
			if strings.EqualFold(name, v) {
				return name
			}
		}
		return orDefault(v, unset)
	case json.Number:
		return orDefault(names[v.String()], "unknown")
	}
	x.wrongType("a string")
	return ""
}

// port is a TCP port; protobuf's JSON allows digits in a string.
func (x field) port() uint16 {
	var s string
	switch v := x.val.(type) {
	case nil:
		x.fault("required")
		return 0
	case json.Number:
		s = v.String()
	case string:
		s = v
	default:
		x.wrongType("a port number")
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		x.fault("want a port number between 1 and 65535")
	}
	return uint16(n)
}

// raw is the value as compact JSON; nil if absent.
func (x field) raw() json.RawMessage {
	if !x.present() {
		return nil
	}
	b, err := json.Marshal(x.val)
	if err != nil {
		x.fault("%v", err)
	}
	return b
}

var durationText = regexp.MustCompile(`^([0-9]*)(?:\.([0-9]{0,9}))?s$`)

// duration is a google.protobuf.Duration in its JSON form, such as "600s" or "0.5s". It
// must not be negative; what is too long for Go is the longest.
func (x field) duration() time.Duration {
	if n, ok := x.val.(json.Number); ok && durationText.MatchString(n.String()+"s") {
		x.fault("want a duration in quotes with its unit, \"%ss\"", n)
		return 0
	}
	s := x.str()
	if s == "" {
		if x.present() && x.val == "" {
			x.fault("want a duration such as \"1.5s\"")
		}
		return 0
	}
	m := durationText.FindStringSubmatch(s)
	if m == nil || m[1]+m[2] == "" {
		x.fault("want a duration such as \"1.5s\", not negative")
		return 0
	}
	seconds, err := strconv.ParseInt("0"+m[1], 10, 64)
	if err != nil || seconds >= math.MaxInt64/int64(time.Second) {
		return math.MaxInt64
	}
	nanos, _ := strconv.ParseInt((m[2] + "000000000")[:9], 10, 64)
	return time.Duration(seconds)*time.Second + time.Duration(nanos)
}
