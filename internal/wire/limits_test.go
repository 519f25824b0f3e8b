package wire

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is a length-delimited field.
func field(num protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

// A response of entries without end is refused before there is room made for them, in lists
// beside the resources and within an entry too.
//
// spec: H-5
func TestOverhead(t *testing.T) {
	if testing.Short() {
		t.Skip("long: many allocations")
	}
	const size = 24 << 20
	alias, wrapped := field(4, nil), func(b []byte) []byte {
		return field(2, append(field(1, []byte(WrapperURL)), field(2, b)...))
	}
	fill := func(b []byte) []byte { return bytes.Repeat(b, size/len(b)) }
	for _, tt := range []struct {
		name  string
		delta bool
		frame []byte
	}{
		{"resources", false, fill(field(2, nil))},
		{"errors", false, fill(field(7, nil))},
		{"aliases of many", false, fill(wrapped(bytes.Repeat(alias, MaxAliases)))},
		{"resources in delta", true, fill(field(2, nil))},
		{"removals", true, fill(field(6, nil))},
		{"removals with constraints", true, fill(field(8, nil))},
		{"errors in delta", true, fill(field(9, nil))},
		{"aliases in delta", true, fill(field(2, bytes.Repeat(alias, MaxAliases)))},
		{"faults in delta", true, fill(field(2, []byte{0xff}))},
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

// Half a million small resources are no attack.
func TestManyResources(t *testing.T) {
	if testing.Short() {
		t.Skip("long: many resources")
	}
	const n = 500_000
	entry := field(2, append(field(1, []byte("type.googleapis.com/a.B")), field(2, []byte("\n\x01a"))...))
	r, err := ScanSotW(bytes.Repeat(entry, n))
	if err != nil || len(r.Resources) != n {
		t.Errorf("%d resources, %v", len(r.Resources), err)
	}
}
