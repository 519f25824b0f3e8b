package wire

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// dumbNames is the set of names without any cleverness.
type dumbNames map[string]bool

func (d dumbNames) list() []string { return slices.Sorted(maps.Keys(d)) }

func (d dumbNames) encode() []byte {
	var b []byte
	for _, name := range d.list() {
		b = AppendName(b, name, paramsOf(name))
	}
	return b
}

// handedOut is a message that a writer still holds, and what it must stay.
type handedOut struct {
	msg    [][]byte
	copied []byte
}

func list(n *Names) (names []string) {
	for name := range n.All() {
		names = append(names, string(name))
	}
	return names
}

// checkChunks: chunks are neither so small that there are many, nor so large that a change
// copies much.
func (n *Names) checkChunks(t *testing.T) {
	t.Helper()
	for i, chunk := range n.chunks {
		size := len(chunk)
		if size == 0 || size > mostChunk || size < leastChunk && i+1 < len(n.chunks) {
			t.Fatalf("chunk %d of %d has %d bytes", i, len(n.chunks), size)
		}
	}
}

// namesRun does to a set and to the dumb one what the bytes say, and compares.
func namesRun(t *testing.T, ops []byte) {
	var n Names
	dumb := dumbNames{}
	var out []handedOut
	for i := 0; i+1 < len(ops); i += 2 {
		name := nameOfByte(ops[i+1])
		switch ops[i] % 8 {
		case 0, 1, 2:
			n.Set(name, paramsOf(name), true)
			dumb[name] = true
		case 3, 4:
			n.Set(name, paramsOf(name), false)
			delete(dumb, name)
		case 5:
			if got, want := list(&n), dumb.list(); !slices.Equal(got, want) {
				t.Fatalf("after %d operations: names %q, want %q", i/2, got, want)
			}
		default:
			n.Flush()
			msg := n.After([]byte(name))
			whole := bytes.Join(msg, nil)
			if want := append([]byte(name), dumb.encode()...); !bytes.Equal(whole, want) {
				t.Fatalf("after %d operations: wire form %x, want %x", i/2, whole, want)
			}
			out = append(out, handedOut{msg, whole})
			n.checkChunks(t)
		}
	}
	for i, h := range out {
		if !bytes.Equal(bytes.Join(h.msg, nil), h.copied) {
			t.Fatalf("message %d of %d was written to after it was handed out", i, len(out))
		}
	}
	if got := list(&n); !slices.Equal(got, dumb.list()) || n.count != len(got) {
		t.Fatalf("in the end: %d names %q, want %q", n.count, got, dumb.list())
	}
}

// nameOfByte makes names of many lengths, so that there are many chunks: among them the
// empty one, and ones whose length takes two bytes.
func nameOfByte(b byte) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("%0*d", 1+int(b%5)*300, b)
}

// paramsOf gives some names parameters.
func paramsOf(name string) *Params {
	if len(name)%2 == 0 {
		return nil
	}
	return NewParams(map[string]string{"env": "prod", "": name[:len(name)/8]})
}

func FuzzNames(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 6, 0, 3, 1, 7, 3, 0, 0, 5, 0})
	f.Add([]byte{0, 9, 3, 9, 0, 9, 6, 1, 3, 9, 3, 9, 15, 0})
	f.Fuzz(namesRun)
}

func TestNames(t *testing.T) {
	if testing.Short() {
		t.Skip("long: many random lists")
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		ops := make([]byte, 2+r.IntN(400))
		for i := range ops {
			ops[i] = byte(r.Uint32())
		}
		namesRun(t, ops)
	}
}

// What churn collects between two messages is bounded by the size of the set.
func TestNamesChurn(t *testing.T) {
	var n Names
	for i := range 100_000 {
		n.Set("a", nil, i%2 == 0)
		n.Set(fmt.Sprint("b", i%7), nil, i%3 == 0)
	}
	if len(n.pending) > 2048 {
		t.Errorf("%d changes of %d names are pending", len(n.pending), n.count)
	}
	n.Set("a", nil, true)
	if got := list(&n); !slices.Contains(got, "a") || len(got) > 8 {
		t.Errorf("names are %q", got)
	}
}

// BenchmarkNames restates ten thousand names of which few changed.
func BenchmarkNames(b *testing.B) {
	for _, changes := range []int{0, 1, 100} {
		b.Run(fmt.Sprint(changes, " changes"), func(b *testing.B) {
			var n Names
			for i := range 10_000 {
				n.Set(fmt.Sprintf("name-%05d", i), nil, true)
			}
			n.Flush()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				for c := range changes {
					n.Set(fmt.Sprintf("name-%05d", c*97), nil, i%2 == 1)
				}
				n.Flush()
				if len(n.After(nil)) < 10 {
					b.Fatal("names are missing")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/name")
		})
	}
}
