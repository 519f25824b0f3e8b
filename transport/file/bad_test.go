package file_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/transport/file"
)

// A path that leads nowhere opens no stream.
// spec: FILE-2
func TestOpenFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	good := filepath.Join(dir, "good.pb")
	place(t, good, answer("1", "a"))
	tests := []struct {
		name, path, watched string
		is                  error
		text                string
	}{
		{name: "missing", path: filepath.Join(dir, "none.pb"), is: os.ErrNotExist, text: "no such file or directory"},
		{name: "directory", path: dir, is: file.ErrNotRegular, text: "not a regular file"},
		{name: "device", path: os.DevNull, is: file.ErrNotRegular, text: "not a regular file"},
		{name: "loop", path: filepath.Join(dir, "loop"), text: "too many levels of symbolic links"},
		{name: "below a file", path: filepath.Join(good, "x.pb"), text: "not a directory"},
		{name: "no watched directory", path: good, watched: filepath.Join(dir, "none"), is: os.ErrNotExist, text: "no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := newRig(t, tt.path).conn(func(f *sourceConfig, _ *carrierConfig) { f.WatchedDirectory = tt.watched })
			defer conn.Close()
			_, err := conn.Open(context.Background(), transport.MethodADS)
			var ce *transport.ConnectError
			if !errors.As(err, &ce) || !strings.HasSuffix(err.Error(), fmt.Sprintf("file %q: %s", tt.path, tt.text)) {
				t.Fatalf("error %v", err)
			}
			if tt.is != nil {
				wantIs(t, err, tt.is)
			}
		})
	}
}

func TestBuildFails(t *testing.T) {
	t.Parallel()
	b := file.NewBuilder(file.Config{}, nil)
	tests := []struct {
		server bootstrap.ManagementServer
		want   string
	}{
		{bootstrap.ManagementServer{URI: "x"}, `management server "x": not a file`},
		{bootstrap.ManagementServer{URI: "x", Carrier: &bootstrap.File{}}, `management server "x": no path is named`},
		{
			bootstrap.ManagementServer{URI: "x", Delta: true, Carrier: &bootstrap.File{Path: "p"}},
			`management server "x": a file has no incremental variant`,
		},
	}
	for _, tt := range tests {
		if _, err := b.Build(tt.server); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %q", err, tt.want)
		}
	}
}

// Servers that are no files are the next builder's.
func TestNextBuilder(t *testing.T) {
	t.Parallel()
	b := file.NewBuilder(file.Config{}, transport.NewGRPC(transport.GRPCConfig{}))
	conn, err := b.Build(bootstrap.ManagementServer{URI: "localhost:1", ChannelCreds: bootstrap.Insecure()})
	must(t, err)
	must(t, conn.Close())
}

// Whatever takes the place of a good file, the stream stays, it is told once, and the next
// good file is used.
// spec: FILE-4
func TestBadFiles(t *testing.T) {
	const text = `{"resources":[`
	tests := []struct {
		name, suffix string
		put          func(t *testing.T, path string)
		want         string // of what is told
	}{
		{name: "directory", put: func(t *testing.T, path string) {
			must(t, os.Symlink(t.TempDir(), path+".new"))
			must(t, os.Rename(path+".new", path))
		}, want: "not a regular file"},
		{name: "loop", put: func(t *testing.T, path string) {
			must(t, os.Symlink(filepath.Base(path), path+".new"))
			must(t, os.Rename(path+".new", path))
		}, want: "too many levels of symbolic links"},
		{name: "sparse GiB", put: func(t *testing.T, path string) {
			must(t, os.WriteFile(path+".new", nil, 0o644))
			must(t, os.Truncate(path+".new", 1<<30))
			must(t, os.Rename(path+".new", path))
		}, want: "the file is larger than the limit of 67108864 bytes; MaxSize raises it"},
		{name: "zeros", put: bytesOf(make([]byte, 1000)), want: "binary: not a DiscoveryResponse"},
		{name: "zeros in JSON", suffix: ".json", put: bytesOf(make([]byte, 1000)), want: "JSON, line 1:1: invalid character"},
		{name: "zeros in YAML", suffix: ".yaml", put: bytesOf(make([]byte, 1000)), want: "YAML: control characters are not allowed"},
		{name: "zeros in text", suffix: ".pb_text", put: bytesOf(make([]byte, 1000)), want: "text, line 1:1: "},
		{name: "broken entry", put: bytesOf([]byte{0x12, 0x02, 0x0a, 0x7f}), want: "binary: resources[0]: not an Any: the bytes end inside a field"},
		{name: "list", suffix: ".json", put: textOf(`[]`), want: "JSON, line 1:1: want an object"},
		{name: "two objects", suffix: ".json", put: textOf("{}\n{}"), want: "JSON, line 2:1: something follows the object"},
		{name: "key twice", suffix: ".json", put: textOf("{\"nonce\":\"1\",\n\"nonce\":\"2\"}"), want: `JSON, line 2:9: a key is there twice`},
		{name: "resources twice", suffix: ".json", put: textOf(text + "],\n\"resources\":[]}"), want: `JSON, line 2:13: a key is there twice`},
		{name: "trailing comma", suffix: ".json", put: textOf(text + "\n{},]}"), want: "JSON, line 2:4: invalid character"},
		{name: "unknown field", suffix: ".json", put: textOf(`{"resorces":[]}`), want: `JSON: an unknown field; did you mean "resources"?`},
		{name: "resources are no list", suffix: ".json", put: textOf(`{"resources":{}}`), want: "JSON: resources: a value of another kind"},
		{
			name: "unknown type", suffix: ".json", put: textOf(text + "\n{\"@type\":\"type.googleapis.com/no.such.Type\"}]}"),
			want: `JSON, line 2: resources[0]: @type: the type "type.googleapis.com/no.such.Type" is not known`,
		},
		{
			name: "unknown field of an entry", suffix: ".json",
			put:  textOf(text + "\n{\"@type\":\"" + clusterURL + "\"},\n{\n\"@type\":\"" + clusterURL + "\",\n\"nmae\":\"a\"}]}"),
			want: `JSON, line 5:1: resources[1]: an unknown field; did you mean "name"?`,
		},
		{
			name: "unknown type within", suffix: ".json",
			put:  textOf(text + `{"@type":"` + clusterURL + `","typed_extension_protocol_options":{"x":{"@type":"type.googleapis.com/no.such.Type"}}}]}`),
			want: `resources[0]: typed_extension_protocol_options.….@type: the type "type.googleapis.com/no.such.Type" is not known`,
		},
		{name: "wrong type of value", suffix: ".yaml", put: textOf("resources:\n- \"@type\": " + clusterURL + "\n  name: 5"), want: "YAML: resources[0]: name: an invalid value for a string field"},
		{name: "key twice in YAML", suffix: ".yaml", put: textOf("nonce: a\nnonce: b"), want: `YAML, line 2: a key is there twice`},
		{name: "tab in YAML", suffix: ".yaml", put: textOf("resources:\n\t- a"), want: "YAML, line 2: found character that cannot start any token"},
		{name: "two documents", suffix: ".yaml", put: textOf("nonce: a\n---\nnonce: b"), want: "YAML: more than one document"},
		{name: "third document", suffix: ".yaml", put: textOf("nonce: a\n---\n---\nnonce: b"), want: "YAML: more than one document"},
		{name: "key twice beside a comment", suffix: ".yaml", put: textOf("# <<\nnonce: a\nnonce: b"), want: `YAML, line 3: a key is there twice`},
		{name: "scalar", suffix: ".yaml", put: textOf("what"), want: "YAML: want an object"},
		{name: "comments alone", suffix: ".yaml", put: textOf("# nothing\n"), want: "the file is empty"},
		{name: "null", suffix: ".yaml", put: textOf("---\n~\n"), want: "YAML: want an object"},
		{name: "odd key", suffix: ".yaml", put: textOf("{a: b}: c"), want: "YAML, line 1: a key that is no text"},
		{name: "text", suffix: ".pb_text", put: textOf("version_info: \"1\"\nresorces {}"), want: "text, line 2:1: an unknown field"},
		{name: "unknown type in text", suffix: ".pb_text", put: textOf("resources {\n[type.googleapis.com/no.such.Type] {}\n}"), want: `text, line 2:1: the type "type.googleapis.com/no.such.Type" is not known`},
		{name: "nothing known", suffix: ".conf", put: textOf("%%%"), want: "YAML: could not find expected directive name"},
		{name: "resource without resource", suffix: ".json", put: textOf(`{"resource":null}`), want: "JSON: the Resource holds no resource"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.suffix == "" {
				tt.suffix = ".pb"
			}
			path := at(t, "cds"+tt.suffix)
			place(t, path, answer("1", "a"))
			r := open(t, path)
			r.ask(clusterURL)
			r.want("1|a")
			tt.put(t, path)
			err := r.wantTold(tt.want)
			if fe := new(file.Error); !errors.As(err, &fe) || fe.Path != path {
				t.Errorf("told %#v", err)
			}
			r.wantError()
			must(t, os.RemoveAll(path))
			place(t, path, answer("2", "a"))
			for got := r.next(); got != "2|a"; got = r.next() { // the path was empty for a moment
				if !strings.HasPrefix(got, "1|error ") {
					t.Fatalf("response %q", got)
				}
			}
			for err := range r.told {
				if err == nil {
					break
				}
			}
		})
	}
}

func bytesOf(data []byte) func(*testing.T, string) {
	return func(t *testing.T, path string) { must(t, testutil.PlaceFile(path, data)) }
}

func textOf(text string) func(*testing.T, string) { return bytesOf([]byte(text)) }

// Each fault is told once, however often the file is looked at, and another one is news.
// spec: FILE-4
func TestToldOnce(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.json")
	place(t, path, answer("1", "a"))
	r := open(t, path, func(_ *sourceConfig, c *carrierConfig) { c.Recheck = settle })
	r.ask(clusterURL, "a")
	r.want("1|a")
	for i := range 20 {
		must(t, testutil.PlaceFile(path, fmt.Appendf(nil, "!%*s", i, "")))
	}
	r.wantTold("JSON, line 1:1: invalid character")
	r.want(`1|error 3 of a: file "PATH": JSON, line 1:1: invalid character looking for beginning of value`)
	must(t, testutil.PlaceFile(path, []byte(" ?")))
	r.wantTold("JSON, line 1:2: invalid character")
	r.want(`1|error 3 of a: file "PATH": JSON, line 1:2: invalid character looking for beginning of value`)
	r.ask(clusterURL, "a", "b") // who comes late hears what there is, and what is wrong
	r.want("1|a")
	r.want(`1|error 3 of a: file "PATH": JSON, line 1:2: invalid character looking for beginning of value` +
		`|error 3 of b: file "PATH": JSON, line 1:2: invalid character looking for beginning of value`)
	place(t, path, answer("1", "a"))
	r.want("1|a")
	r.wantTold("")
}

// A file that is bad from the start opens a stream all the same.
func TestBadFromTheStart(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.json")
	must(t, testutil.PlaceFile(path, []byte("{")))
	r := open(t, path)
	r.wantTold("unexpected end of JSON input")
	r.ask(clusterURL, "a")
	r.want(`|error 3 of a: file "PATH": JSON, line 1:1: unexpected end of JSON input`)
	place(t, path, answer("1", "a"))
	r.want("1|a")
	r.wantTold("")
}

// A file holds one type. Whoever asks for another is told so.
func TestOtherType(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.yaml")
	place(t, path, answer("1", "a"))
	r := open(t, path)
	r.ask(listenerURL, "l")
	mismatch := `the file holds "` + clusterURL + `" and was asked for "` + listenerURL + `"`
	r.wantTold(mismatch)
	r.want(`1|error 3 of l: file "PATH": ` + mismatch)
	r.ask(clusterURL, "a")
	r.want("1|a")
	must(t, testutil.PlaceFile(path, []byte("{}")))
	r.wantTold("")
	if a, b := r.response(), r.response(); a.TypeURL != listenerURL || b.TypeURL != clusterURL || len(a.Resources)+len(b.Resources) > 0 {
		t.Errorf("responses %+v, %+v: want one without resources for each type", a, b)
	}
}

// Aliases that multiply are refused before they eat memory: those that make many values, and
// those that repeat a large one. It measures the process, and so runs alone.
func TestYAMLBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("long: files near the bound")
	}
	large := "nonce: &a " + strings.Repeat("x", 1<<20) + "\nresources: [" + strings.Repeat("*a,", 2_000) + "]\n"
	merges := "a: &a {a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1, j: 1}\nb: {<<: [" + strings.Repeat("*a,", 50_000) + "]}\n"
	tests := []struct{ name, text, want string }{
		{"laughs", laughs(), "YAML: document contains excessive aliasing"},
		{"large", large, "what the aliases of the file stand for is larger than the limit of 8388608 bytes"},
		{"merges", merges, "YAML: document contains excessive aliasing"},
		{"itself", "a: &a [*a]\n", "YAML, line 1: an anchor contains itself"},
		{"deep", strings.Repeat("[", 100_000), "YAML: exceeded max depth of 10000"},
		{"deep blocks", strings.Repeat("- ", 1_000_000), "YAML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := at(t, "cds.yaml")
			must(t, testutil.PlaceFile(path, []byte(tt.text)))
			before := allocated()
			r := open(t, path, func(_ *sourceConfig, c *carrierConfig) { c.MaxSize = 8 << 20 })
			r.wantTold(tt.want)
			const most = 512 << 20
			if used := allocated() - before; used > most {
				t.Errorf("%d MiB were used to refuse %d KiB", used>>20, len(tt.text)>>10)
			}
		})
	}
}

// laughs is a text of YAML in which each alias stands for ten of the one before.
func laughs() string {
	text := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		text += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	return text
}

// Depth is bounded in JSON too.
func TestDeepJSON(t *testing.T) {
	t.Parallel()
	path := at(t, "cds.json")
	must(t, testutil.PlaceFile(path, bytes.Repeat([]byte(`{"resources":[`), 1_000_000)))
	r := open(t, path)
	r.wantTold("exceeded max depth")
}

// allocated is how many bytes were ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A GiB that has to be refused is not read, and a limit that is exceeded while the file
// grows holds too. It measures the process, and so runs alone.
func TestLimit(t *testing.T) {
	path := at(t, "cds.pb")
	must(t, os.WriteFile(path, nil, 0o644))
	must(t, os.Truncate(path, 1<<30))
	before := allocated()
	r := open(t, path)
	err := r.wantTold("larger than the limit")
	if se := new(file.SizeError); !errors.As(err, &se) || se.Limit != 64<<20 {
		t.Errorf("told %#v", err)
	}
	if used := allocated() - before; used > 16<<20 {
		t.Errorf("%d MiB were allocated", used>>20)
	}
	place(t, path, answer("1", "a"))
	size := int64(len(encode(t, path, answer("1", "a"))))
	for _, limit := range []int64{size, size - 1} {
		s := open(t, path, func(_ *sourceConfig, c *carrierConfig) { c.MaxSize = limit })
		if limit < size {
			s.wantTold("larger than the limit")
			continue
		}
		s.ask(clusterURL)
		s.want("1|a")
	}
}

func TestUnknownFieldsIgnored(t *testing.T) {
	t.Parallel()
	for suffix, text := range map[string]string{
		".json":    `{"new":1,"version_info":"1","resources":[{"@type":"` + clusterURL + `","name":"a","new":{}}]}`,
		".yaml":    "new: 1\nversion_info: '1'\nresources:\n- '@type': " + clusterURL + "\n  name: a\n  new: {}\n",
		".pb_text": "new: 1 version_info: '1' resources { [" + clusterURL + "] { name: 'a' new {} } }",
	} {
		path := at(t, "cds"+suffix)
		must(t, testutil.PlaceFile(path, []byte(text)))
		r := open(t, path, func(_ *sourceConfig, c *carrierConfig) { c.IgnoreUnknownFields = true })
		r.ask(clusterURL)
		r.want("1|a")
	}
}
