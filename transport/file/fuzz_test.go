package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"testing"

	"github.com/xdswatch/xdswatch/internal/wire"
	"github.com/xdswatch/xdswatch/testutil"
)

// FuzzParse: whatever a file holds, it is refused with an error of this package, or gives
// a response that can be read; and the same one if what was read before is used again.
func FuzzParse(f *testing.F) {
	suffixes := []string{".pb", ".pb_text", ".json", ".yaml", ""}
	for i, suffix := range suffixes {
		b, err := testutil.EncodeFile("x"+suffix, many(3, "one"))
		must(f, err)
		f.Add(byte(i), b)
		f.Add(byte(i), []byte(`{"version_info": "1", "resources": [{"@type": "type.googleapis.com/google.protobuf.Struct", "value": {}}]}`))
		f.Add(byte(i), []byte(`resource { [type.googleapis.com/envoy.config.cluster.v3.ClusterCollection] {} } version: "1"`))
		f.Add(byte(i), []byte("a: &a [1, .inf, ~]\nresources: [*a, {<<: {b: c}, b: d}]\n"))
	}
	config := Config{MaxSize: 1 << 20, IgnoreUnknownFields: true}.withDefaults()
	f.Fuzz(func(t *testing.T, suffix byte, data []byte) {
		path := "/x" + suffixes[int(suffix)%len(suffixes)]
		sum := sha256.Sum256(data)
		c, err := parse(context.Background(), path, data, sum, nil, config)
		if err != nil {
			if !as[*SyntaxError](err) && !as[*SizeError](err) && err != ErrEmpty {
				t.Fatalf("error %T: %v", err, err)
			}
			return
		}
		const asked = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
		msg, err := c.frame(path, asked, "7", [][]byte{[]byte("file:///x")})
		must(t, err)
		r, err := wire.ScanSotW(msg)
		must(t, err)
		if r.Nonce != "7" || r.Version != c.version || r.TypeURL != asked && r.TypeURL != c.typeURL {
			t.Fatalf("response of version %q, type %q, nonce %q", r.Version, r.TypeURL, r.Nonce)
		}
		again, err := parse(context.Background(), path, data, sum, c, config)
		must(t, err)
		if !bytes.Equal(again.body, c.body) {
			t.Fatalf("%x became %x", c.body, again.body)
		}
	})
}
