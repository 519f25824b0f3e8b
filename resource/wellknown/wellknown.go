// Package wellknown lists the resource types of Envoy's APIs, for tools that take the type
// as text. It links the protos of all of them: a program that knows its types imports
// their packages (cds, eds, lds, …) alone.
package wellknown

import (
	"github.com/xdswatch/xdswatch/resource"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/ecds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/resource/lds"
	"github.com/xdswatch/xdswatch/resource/leds"
	"github.com/xdswatch/xdswatch/resource/rds"
	"github.com/xdswatch/xdswatch/resource/rtds"
	"github.com/xdswatch/xdswatch/resource/sds"
	"github.com/xdswatch/xdswatch/resource/srds"
	"github.com/xdswatch/xdswatch/resource/vhds"
)

// Entry is one well-known type.
type Entry struct {
	Short string // the usual abbreviation in lower case: "cds"
	Kind  resource.AnyType
}

// All gives the well-known types, listeners first, down to endpoints, and then those that
// stand beside that chain. The caller may change the slice.
func All() []Entry {
	return []Entry{
		{"lds", lds.Type},
		{"rds", rds.Type},
		{"srds", srds.Type},
		{"vhds", vhds.Type},
		{"cds", cds.Type},
		{"eds", eds.Type},
		{"leds", leds.Type},
		{"sds", sds.Type},
		{"rtds", rtds.Type},
		{"ecds", ecds.Type},
	}
}

// ByShort finds a type by its abbreviation, exactly as in [Entry].
func ByShort(short string) (resource.AnyType, bool) {
	for _, e := range All() {
		if e.Short == short {
			return e.Kind, true
		}
	}
	return nil, false
}

// ByTypeURL finds a type by its type URL, prefix included.
func ByTypeURL(url string) (Entry, bool) {
	for _, e := range All() {
		if e.Kind.TypeURL() == url {
			return e, true
		}
	}
	return Entry{}, false
}
