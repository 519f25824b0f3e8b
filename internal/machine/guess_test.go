package machine

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// Of a type that the program does not know, what stands where names usually do is a name only
// if it may be one; the wrapper's counts in any case.
//
// spec: P-12
func TestGuessedName(t *testing.T) {
	table := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "\n\x03a.b\x12\x06")
	for _, tt := range []struct{ field, wrapper, want string }{
		{field: "a", want: "a"},
		{field: "añ 漢-1", want: "añ 漢-1"},
		{field: "a\x01b"},
		{field: "a\nb"},
		{field: "a\u009b"},
		{field: "a\u202e"},
		{field: string(table)},
		{field: "\xff"},
		{field: strings.Repeat("a", maxGuessed), want: strings.Repeat("a", maxGuessed)},
		{field: strings.Repeat("a", maxGuessed+1)},
		{field: "a\x01b", wrapper: "w", want: "w"},
	} {
		payload := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), tt.field)
		for _, guessed := range []bool{true, false} {
			ts := &link{cache: &cache{typ: &Type{URL: "u", NameField: 1, Guessed: guessed}}}
			name, err := ts.nameOf(&wire.Resource{Name: []byte(tt.wrapper), TypeURL: []byte("u"), Payload: payload, HasBody: true})
			if guessed && (string(name) != tt.want || (err == nil) != (tt.want != "")) {
				t.Errorf("%q, wrapper %q: %q, %v; want %q", tt.field, tt.wrapper, name, err, tt.want)
			}
			if !guessed && tt.wrapper == "" && tt.field != "\xff" && !bytes.Equal(name, []byte(tt.field)) {
				t.Errorf("%q of a type that is known: %q, %v", tt.field, name, err)
			}
		}
	}
}
