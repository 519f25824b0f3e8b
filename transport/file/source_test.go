package file

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xdswatch/xdswatch/internal/yamljson"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// When a file may be read: one that was moved there as soon as its last write is some time
// ago, one that is written in place when it was seen to stay as it is for as long.
func TestSettling(t *testing.T) {
	t.Parallel()
	const settle = 100 * time.Millisecond
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	must(t, os.WriteFile(one, nil, 0o644))
	must(t, os.WriteFile(two, nil, 0o644))
	type look struct {
		path   string
		at     time.Duration // since start
		wrote  time.Duration // the time of the file, since start
		want   time.Duration // how long to wait yet
		unrest time.Duration // since when it was not left alone, since start; or never
	}
	const never = time.Duration(-1)
	tests := map[string][]look{
		"old":       {{one, 0, -time.Hour, 0, never}},
		"just made": {{one, 0, -30 * time.Millisecond, 70 * time.Millisecond, 0}, {one, 70 * time.Millisecond, -30 * time.Millisecond, 0, never}},
		"moved":     {{one, 0, -time.Hour, 0, never}, {two, time.Second, -time.Minute, 0, never}},
		"in place": {
			{one, 0, -time.Hour, 0, never},
			{one, time.Second, 0, settle, time.Second}, // the file system counts in seconds
			{one, time.Second + 60*time.Millisecond, 0, 40 * time.Millisecond, time.Second},
			{one, time.Second + 90*time.Millisecond, time.Second, settle, time.Second},
			{one, time.Second + 190*time.Millisecond, time.Second, 0, never},
		},
		"from the future": {{one, 0, time.Hour, settle, 0}, {one, settle, time.Hour, 0, never}},
	}
	for name, looks := range tests {
		t.Run(name, func(t *testing.T) {
			var s sighting
			for i, l := range looks {
				wrote := start.Add(l.wrote)
				must(t, os.Chtimes(l.path, wrote, wrote))
				info, err := os.Stat(l.path)
				must(t, err)
				if got := s.settling(start.Add(l.at), info, settle); got != l.want {
					t.Errorf("look %d: wait %v, want %v", i, got, l.want)
				}
				unrest := never
				if !s.restive.IsZero() {
					unrest = s.restive.Sub(start)
				}
				if unrest != l.unrest {
					t.Errorf("look %d: restive since %v, want %v", i, unrest, l.unrest)
				}
			}
		})
	}
}

// A file that is written without a pause holds back what was written beside it for a while, and not for ever.
//
// spec: FILE-2
func TestReferenceBesideBusyOne(t *testing.T) {
	t.Parallel()
	const settle = 100 * time.Millisecond
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	certificate, key := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	write := func(path, text string, at time.Time) {
		must(t, os.WriteFile(path, []byte(text), 0o644))
		must(t, os.Chtimes(path, at, at))
	}
	s := source{config: &Config{Settle: settle, MaxSize: 1 << 10}, content: &content{refers: references{
		files: []string{certificate, key}, secrets: []secret{{0, "pair", []string{certificate, key}}},
	}}}
	write(certificate, "1", start)
	write(key, "1", start)
	now := start.Add(time.Hour)
	s.checkReferences(now)
	write(certificate, "2", start.Add(time.Minute)) // and nobody writes to it again
	told := -1
	for n := 0; told < 0 && n < 2*impatience; n++ {
		now = now.Add(settle)
		before := s.contents
		write(key, "2", now)
		if again := s.checkReferences(now); again != settle {
			t.Fatalf("look %d: the next after %v, want %v", n, again, settle)
		}
		if s.contents > before {
			told = n
		}
	}
	if told != impatience+1 {
		t.Errorf("the certificate is told with look %d, want %d", told, impatience+1)
	}
}

// A Secret whose own files are left alone does not wait for those of another, with which it shares one.
//
// spec: FILE-2
func TestReferenceShared(t *testing.T) {
	t.Parallel()
	const settle = 100 * time.Millisecond
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dir := t.TempDir()
	ca, a, b := filepath.Join(dir, "ca"), filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write := func(text string, at time.Time, paths ...string) {
		for _, path := range paths {
			must(t, os.WriteFile(path, []byte(text), 0o644))
			must(t, os.Chtimes(path, at, at))
		}
	}
	secrets := []secret{{0, "A", []string{a, ca}}, {1, "B", []string{b, ca}}}
	s := source{config: &Config{Settle: settle, MaxSize: 1 << 10}, content: &content{refers: references{
		files: []string{a, b, ca}, secrets: secrets,
	}}}
	write("1", start, ca, a, b)
	now := start.Add(time.Hour)
	i := &interest{}
	s.checkReferences(now)
	i.renew(&s)
	write("2", start.Add(time.Minute), ca, b) // and left alone
	var told []string
	for n := range 10 {
		now = now.Add(settle)
		if n < 5 {
			write("2", now, a)
		}
		s.checkReferences(now)
		renewed := i.renew(&s)
		for _, of := range secrets {
			if renewed[of.index] {
				told = append(told, fmt.Sprint(of.name, " at look ", n))
			}
		}
	}
	if want := []string{"B at look 1", "A at look 5"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// A writer that never pauses is a fault, which ends when it does.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cds.json")
	must(t, os.WriteFile(path, []byte(`{"version_info": "1"}`), 0o644))
	s := source{ctx: t.Context(), path: path, config: Config{Settle: time.Second}.withDefaults()}
	start := time.Now()
	var now time.Time
	for i := range 2*impatience + 1 {
		if s.fault != nil {
			t.Fatalf("after %d writes in %v: %v", i, now.Sub(start), s.fault)
		}
		now = start.Add(time.Duration(i) * time.Second / 2)
		must(t, os.Chtimes(path, now, now))
		if s.check(now) <= 0 {
			t.Fatalf("write %d: the file is read", i)
		}
	}
	now = now.Add(time.Second / 2)
	must(t, os.Chtimes(path, now, now))
	if s.check(now); !errors.Is(s.fault, ErrUnsettled) {
		t.Fatalf("fault %v, want %v", s.fault, ErrUnsettled)
	}
	if wait := s.check(now.Add(time.Second)); wait != 0 || s.fault != nil || s.content.version != "1" {
		t.Errorf("wait %v, fault %v, content %+v", wait, s.fault, s.content)
	}
}

// A text that quotes a file is fit for a string of protobuf.
func TestPrinted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain é": "plain é", "a\x00b\n": "a\uFFFDb\uFFFD", "a\xffb": "a\uFFFDb",
		strings.Repeat("é", 600): strings.Repeat("é", 512) + "…",
	} {
		if got := printed(text); got != want {
			t.Errorf("%q is printed as %q", text, got)
		}
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "a", "b", "f"), nil, 0o644))
	for link, to := range map[string]string{
		"up": "a/b/../b", "abs": filepath.Join(root, "up"), "lost": "a/none/f", "loop": "loop",
	} {
		must(t, os.Symlink(to, filepath.Join(root, link)))
	}
	tests := map[string][]place{
		"a/b/f":    {{"a/b", "f"}},
		"up/f":     {{"", "up"}, {"a/b", "f"}},
		"abs/f":    {{"", "abs"}, {"", "up"}, {"a/b", "f"}},
		"lost":     {{"", "lost"}, {"a", "none"}},
		"a/x/y/z":  {{"a", "x"}},
		"a/b/f/no": {{"a/b", "f"}},
		"a":        {{"", "a"}},
	}
	for path, want := range tests {
		for i := range want {
			want[i].dir = filepath.Join(root, want[i].dir)
		}
		if diff := cmp.Diff(want, trace(filepath.Join(root, path)), cmp.AllowUnexported(place{})); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", path, diff)
		}
	}
	if got := len(trace(filepath.Join(root, "loop"))); got != maxLinks+1 {
		t.Errorf("%d places on a loop, want %d", got, maxLinks+1)
	}
}

func TestInterestUpdate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		before, now  string
		wild, wanted bool
		asked        bool
	}{
		{"", "", true, true, false}, // the second empty list of a wildcard
		{"a", "a", false, true, false},
		{"a", "a b", false, true, true},
		{"a b", "b", false, true, false},
		{"a c", "b", false, true, true},
		{"a", "", false, false, false},
		{"a", "*", true, true, true},
		{"* a", "*", true, true, false},
		{"*", "", false, false, false},
		{"*", "a", false, true, true},
	}
	for _, tt := range tests {
		i := &interest{}
		i.update(bytes.Fields([]byte(tt.before)))
		if !i.asked {
			t.Errorf("%q: a first request asks for nothing", tt.before)
		}
		i.asked = false
		i.update(bytes.Fields([]byte(tt.now)))
		if i.wild != tt.wild || i.wanted() != tt.wanted || i.asked != tt.asked {
			t.Errorf("%q, %q: wild %v, wanted %v, asked %v", tt.before, tt.now, i.wild, i.wanted(), i.asked)
		}
	}
}

func TestFileURL(t *testing.T) {
	t.Parallel()
	tests := []struct{ url, path string }{
		{"file:///etc/xds/a.json", "/etc/xds/a.json"},
		{"file://localhost/etc//a.json", "/etc/a.json"},
		{"file:/etc/a%20b.json", "/etc/a b.json"},
		{"file://host/etc/a.json", ""},
		{"http:///etc/a.json", ""},
		{"file:", ""},
		{"/etc/a.json", ""},
		{"file:///%zz", ""},
	}
	for _, tt := range tests {
		path, ok := PathOf(tt.url)
		if filepath.ToSlash(path) != tt.path || ok != (tt.path != "") {
			t.Errorf("%q: path %q, %v, want %q", tt.url, path, ok, tt.path)
		}
		if ok {
			if again, _ := PathOf(urlOf(path)); again != path {
				t.Errorf("%q came back as %q", path, again)
			}
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]format{
		"a.pb": formatBinary, "a.pb_text": formatText, "a.txtpb": formatText, "a.json": formatJSON,
		"a.yaml": formatYAML, "a.yml": formatYAML, "a": formatUnknown, "a.json.bak": formatUnknown,
	} {
		if got := formatOf(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

// Values of YAML in protobuf's JSON.
func TestYAMLValues(t *testing.T) {
	t.Parallel()
	const text = `{1: {true: ~, a: [1, -2, 18446744073709551615, 1.5, .inf, -.inf, .nan, yes, "é\n", 2020-01-01]}}`
	const want = `{"1":{"a":[1,-2,"18446744073709551615",1.5,"Infinity","-Infinity","NaN",true,"é\n","2020-01-01"],"true":null}}`
	root, err := yamlRoot([]byte(text))
	must(t, err)
	w := yamljson.Writer{Limit: len(want)}
	must(t, w.Value(root))
	if got := string(w.B); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	short := yamljson.Writer{Limit: len(want) - 1}
	if err := short.Value(root); err != yamljson.ErrTooMuch {
		t.Errorf("above the limit: %v", err)
	}
}

// A merge key may be overridden.
func TestYAMLMerge(t *testing.T) {
	t.Parallel()
	root, err := yamlRoot([]byte("base: &b {x: 1, z: 2}\nthis: {<<: *b, z: 3}\n"))
	must(t, err)
	w := yamljson.Writer{Limit: 1000}
	must(t, w.Value(root))
	if got := string(w.B); !strings.Contains(got, `"this":{"x":1,"z":3}`) {
		t.Errorf("got %s", got)
	}
}
