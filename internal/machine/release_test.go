package machine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
)

// The frame of a large response is released if most of it is new, and then nothing of the
// response refers to it once it is decoded.
func TestRelease(t *testing.T) {
	const n, size = 64, 32 << 10
	payloads := make([][]byte, n)
	response := func(typeURL, version string, changed int) *wire.Response {
		resp := &wire.Response{TypeURL: typeURL, Version: version, Nonce: version, Size: n * size}
		for i := range payloads {
			if i < changed {
				payloads[i] = append(make([]byte, size), version...)
			}
			resp.Resources = append(resp.Resources, wire.Resource{
				Name: fmt.Appendf(nil, "r%04d", i), TypeURL: []byte(typeURL), Payload: payloads[i], HasBody: true,
			})
		}
		return resp
	}
	r := newRig(t, Config{})
	r.step(Start{r.watch("*")})
	r.up()
	for _, c := range []struct {
		version  string
		changed  int
		alias    bool
		released bool
	}{
		{"1", n, false, true},
		{"1", 0, false, false},
		{"2", n / 4, false, false},
		{"3", n * 3 / 4, false, true},
		{"4", n * 3 / 4, true, true},
	} {
		resp := response(r.typ.URL, c.version, c.changed)
		if c.alias {
			r.step(Start{r.watch("alias")})
			resp.Resources[0].Attributes = &wire.Attributes{Aliases: [][]byte{[]byte("alias")}}
		}
		fx := r.step(Received{r.ref, resp})
		if got := len(fx.Release) == 1; got != c.released {
			t.Errorf("version %s with %d of %d changed: released %v, want %v", c.version, c.changed, n, got, c.released)
		}
		for _, task := range fx.Decode {
			for i := range task.Items {
				task.Items[i].Raw = bytes.Clone(task.Items[i].Raw) // as the engine does
			}
			fx = r.decode(task)
		}
		for i := range c.changed {
			if name := resp.Resources[i].Name; c.released && name != nil {
				t.Errorf("version %s: %s still refers to the frame", c.version, name)
			}
		}
		if len(fx.consumed()) != 1 {
			t.Fatalf("version %s: the response was not done with", c.version)
		}
		r.step(Delivered{r.ref}, Written{r.ref})
	}
}
