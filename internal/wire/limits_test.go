package wire

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/race"
)

// field is a length-delimited field.
func field(num protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

// A response of entries without end is refused before there is room made for them, in lists
// beside the resources and within an entry.
//
// spec: H-5
func TestCostOfOverhead(t *testing.T) {
	race.SkipCost(t)
	const size = 24 << 20
	alias, wrapped := field(4, nil), func(b []byte) []byte {
		return field(2, append(field(1, []byte(WrapperURL)), field(2, b)...))
	}
	fill := func(b []byte) []byte { return bytes.Repeat(b, size/len(b)) }
	long := bytes.Repeat([]byte("%"), MaxName)
	for _, tt := range []struct {
		name  string
		delta bool
		frame []byte
	}{
		{"errors", false, fill(field(7, nil))},
		{"aliases of many", false, fill(wrapped(bytes.Repeat(alias, MaxAliases)))},
		{"removals", true, fill(field(6, nil))},
		{"removals with constraints", true, fill(field(8, nil))},
		{"errors in delta", true, fill(field(9, nil))},
		{"faults in delta", true, bytes.Repeat(field(2, []byte{0xff}), MaxResources)},
		{"long names", true, bytes.Repeat(field(2, field(3, long)), size/len(long))},
		{"long removals", true, bytes.Repeat(field(6, long), size/len(long))},
		{"long removals with constraints", true, bytes.Repeat(field(8, field(1, long)), size/len(long))},
		{"long names of errors", false, bytes.Repeat(field(7, field(1, field(1, long))), size/len(long))},
		{"long aliases", true, field(2, bytes.Repeat(field(4, long), size/len(long)))},
		{"aliases in delta", true, fill(field(2, bytes.Repeat(alias, MaxAliases)))},
	} {
		scan := (*Response).ScanSotW
		if tt.delta {
			scan = (*Response).ScanDelta
		}
		var r Response
		err := scan(&r, tt.frame)
		var over *OverheadError
		if !errors.As(err, &over) || over.Limit != MaxOverhead || over.Size != len(tt.frame) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if got := int(unsafe.Sizeof(Resource{})); got != entryCost {
		t.Errorf("an entry takes %d bytes and not %d", got, entryCost)
	}
}

// A response has so many resources at most, however small they are, and more if it is larger than
// any is by default. What is over is refused before there is room made for it.
//
// spec: H-5
func TestMaxResources(t *testing.T) {
	if testing.Short() {
		t.Skip("long: many resources")
	}
	any := append(field(1, []byte("type.googleapis.com/a.B")), field(2, []byte("\n\x01a"))...)
	for name, tt := range map[string]struct {
		scan  func(*Response, ...[]byte) error
		entry []byte
	}{
		"in state of the world": {(*Response).ScanSotW, any},
		"in delta":              {(*Response).ScanDelta, append(field(3, []byte("a")), field(2, any)...)},
	} {
		most := bytes.Repeat(field(2, tt.entry), MaxResources)
		var r Response
		if err := tt.scan(&r, most); err != nil || len(r.Resources) != MaxResources {
			t.Errorf("%s: %d resources, %v", name, len(r.Resources), err)
		}
		frame := append(most, field(2, tt.entry)...)
		err := tt.scan(&r, frame)
		var over *CountError
		if !errors.As(err, &over) || over.Limit != MaxResources || over.Size != len(frame) || len(r.Resources) != 0 {
			t.Errorf("%s: %d resources, %v", name, len(r.Resources), err)
		}
	}
	for size, want := range map[int]int{1: MaxResources, 128 << 20: MaxResources, 256 << 20: 2 * MaxResources} {
		if got := ResourcesIn(size); got != want {
			t.Errorf("%d resources in %d bytes, want %d", got, size, want)
		}
	}
}

// Texts that are kept, sent back and logged are bounded.
//
// spec: H-9
func TestMaxText(t *testing.T) {
	long := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for _, tt := range []struct {
		name string
		make func(text []byte) []byte
	}{
		{"version_info", func(b []byte) []byte { return field(1, b) }},
		{"type_url", func(b []byte) []byte { return field(4, b) }},
		{"nonce", func(b []byte) []byte { return field(5, b) }},
	} {
		for _, scan := range []func(*Response, ...[]byte) error{(*Response).ScanSotW, (*Response).ScanDelta} {
			var r Response
			if err := scan(&r, tt.make(long(MaxText))); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			if err := scan(&r, tt.make(long(MaxText+1))); !errors.Is(err, errText) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
	var r Response
	if err := r.ScanSotW(field(6, field(1, long(MaxText+1)))); !errors.Is(err, errText) {
		t.Errorf("identifier: %v", err)
	}
	status := field(9, field(2, field(2, long(MaxText+1))))
	if err := r.ScanDelta(status); err != nil || len(r.Errors[0].Message) != MaxText {
		t.Errorf("a status: %v, %d bytes", err, len(r.Errors[0].Message))
	}
	for name, tt := range map[string]struct {
		num  protowire.Number
		most int
	}{"version": {1, MaxText}, "name": {3, MaxName}} {
		if err := r.ScanDelta(field(2, field(tt.num, long(tt.most))), field(2, field(tt.num, long(tt.most+1)))); err != nil {
			t.Fatal(err)
		}
		good, bad := r.Resources[0], r.Resources[1]
		if good.Fault != nil || bad.Fault == nil || len(bad.Name)+len(bad.Version) > 0 {
			t.Errorf("%s: %v, %v with %d bytes", name, good.Fault, bad.Fault, len(bad.Name)+len(bad.Version))
		}
	}
}
