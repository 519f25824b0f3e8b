package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdswatch/xdswatch/internal/heapsize"
	"github.com/xdswatch/xdswatch/internal/race"
	"github.com/xdswatch/xdswatch/internal/yamljson"
	"github.com/xdswatch/xdswatch/testutil"
)

// Files of nothing but brackets are refused, or taken as far as they are allowed, within bounds
// of memory.
//
// spec: H-5
func TestCostOfFiles(t *testing.T) {
	race.SkipCost(t)
	const size, most = 60 << 20, 256 << 20
	const cluster = `"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster`
	for _, tt := range []struct {
		name, suffix, head, piece, tail, want string
		times                                 int
	}{
		{"JSON entries", ".json", `{"resources":[`, "{},", `{}]}`, "too many for a file", size / 3},
		{"JSON within an entry", ".json", `{"resources":[{"@type":"type.googleapis.com/envoy.config.cluster.v3.Cluster","x":[`, "{},", `{}]}]}`, "so many parts", size / 3},
		{"JSON beside the entries", ".json", `{"resource_errors":[`, "{},", `{}]}`, "so many parts", size / 3},
		{"JSON keys", ".json", `{`, `"a":1,`, `"b":1}`, "there twice", size / 6},
		{"JSON entries as allowed", ".json", `{"resources":[`, "{},", `{}]}`, "", 250_000},
		{"YAML flow", ".yaml", `resources: [`, "{},", `{}]`, "parts", size / 3},
		{"YAML blocks", ".yaml", "resources:\n", "- {}\n", "", "parts", size / 5},
		{"YAML nested blocks", ".yaml", "resources:\n", "- - - {}\n", "", "parts", size / 9},
		{"YAML flow as allowed", ".yaml", `resources: [`, "{},", `{}]`, "", yamljson.MaxParts/2 - 10},
		{"YAML blocks as allowed", ".yaml", "resources:\n", "- " + cluster + "\n", "", "", yamljson.MaxParts / 4},
		{"YAML comments as allowed", ".yaml", "resources:\n", "- {} #" + strings.Repeat("a", 500) + "\n", "", "", yamljson.MaxParts/4 - 10},
		{"YAML comment as allowed", ".yaml", "resources: []\n#", "a", "\n", "", size},
		{"text", ".pb_text", "", "resources{}", "", "parts", size / 11},
		{"text as allowed", ".pb_text", "", "resources{}", "", "", 250_000},
		{"no suffix", "", `{"resources":[`, "{},", `{}]}`, "too many for a file", size / 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := Config{}.withDefaults()
			data := slices.Concat([]byte(tt.head), bytes.Repeat([]byte(tt.piece), tt.times), []byte(tt.tail))
			var err error
			begin := time.Now()
			peak := heapsize.While(func() {
				_, err = parse(t.Context(), "/x"+tt.suffix, data, sha256.Sum256(data), nil, config)
			})
			t.Logf("%d KiB, heap of %d MiB, %v: %v", len(data)>>10, peak>>20, time.Since(begin), err)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if peak > most {
				t.Errorf("the heap grew to %d MiB", peak>>20)
			}
		})
	}
}

// A conversion ends with the stream, and leaves nothing behind that would be told.
//
// spec: H-5
func TestConversionIsCancelled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: a large file")
	}
	for _, suffix := range []string{".json", ".yaml"} {
		data, err := testutil.EncodeFile("x"+suffix, many(2_000, "one"))
		must(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("over"))
		if _, err := parse(ctx, "/x"+suffix, data, sha256.Sum256(data), nil, Config{}.withDefaults()); err != errStopped {
			t.Errorf("%s: %v", suffix, err)
		}
	}
}
