package bootstrap_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xdswatch/xdswatch/bootstrap"
)

// FuzzParse: no text makes Parse panic; what it accepts is valid and complete, and is
// told the same way twice.
func FuzzParse(f *testing.F) {
	cases, probes, _ := readCases(f)
	seeds := 0
	for _, c := range append(cases, probes...) {
		if c.JSON == nil {
			continue
		}
		text := *c.JSON
		switch c.Scope {
		case "delivery", "pair-of-servers", "pair-of-call-creds":
		default:
			text = wrap(f, c)
		}
		f.Add([]byte(text))
		seeds++
	}
	files, err := filepath.Glob("testdata/*_*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(envoyDoc(toCluster, tlsCluster(`common_tls_context: {validation_context: {system_root_certs: {}}}`))))
	f.Add([]byte("a: &a [x]\nb: [*a, *a]\n"))
	f.Add([]byte("node: !!binary AQI=\ndynamic_resources: 2001-01-01\n"))
	if seeds < 80 || len(files) < 4 {
		f.Fatalf("%d seeds of cases and %d files: the corpus is lost", seeds, len(files))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		boot, err := bootstrap.Parse("fuzz", data, caseOptions()...)
		again, err2 := bootstrap.Parse("fuzz", data, caseOptions()...)
		if outcome(boot, err) != outcome(again, err2) {
			t.Fatalf("two outcomes:\n%s\n%s", outcome(boot, err), outcome(again, err2))
		}
		if err != nil {
			if boot != nil {
				t.Fatal("a Config beside an error")
			}
			return
		}
		if err := boot.Validate(); err != nil {
			t.Fatalf("accepted, but Validate: %v", err)
		}
		if boot.Node == nil || len(boot.Servers) == 0 {
			t.Fatalf("incomplete: %+v", boot)
		}
		for i, s := range boot.Servers {
			if s.Key() != again.Servers[i].Key() {
				t.Fatalf("two keys of server %d", i)
			}
		}
		if diff := cmp.Diff(outcome(boot, nil), outcome(boot.WithDefaults(), nil)); diff != "" {
			t.Fatalf("defaults were not all filled:\n%s", diff)
		}
	})
}
