package script_test

import (
	"slices"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/xdswatch/xdswatch/testutil/script"
)

const text = `# A claim.
# spec: ACK-1 ACK-2
# server: delta
# more about it

watch w1 cds a
----
* open
-> 1 cds sub=[a] node

sleep 1s
----
`

func parse(t *testing.T, text string) *script.Script {
	t.Helper()
	s, err := script.Parse("x.txtar", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	got := parse(t, text+"-- file --\nbody\n")
	want := &script.Script{
		Name: "x.txtar", Claim: "A claim.",
		Headers: map[string][]string{"spec": {"ACK-1", "ACK-2"}, "server": {"delta"}},
		Steps: []script.Step{
			{Line: 6, Input: "watch w1 cds a", Want: []string{"* open", "-> 1 cds sub=[a] node"}},
			{Line: 11, Input: "sleep 1s"},
		},
		Files: map[string][]byte{"file": []byte("body\n")},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(script.Script{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"server delta"}, got.Unsought()); diff != "" {
		t.Errorf("words that nobody looked for (-want +got):\n%s", diff)
	}
	if got.Has("server", "manual") || !got.Has("server", "delta") || got.Unsought() != nil {
		t.Error("words that were looked for are listed")
	}
	if !got.Has("spec", "ACK-2") || got.Has("spec", "ACK-3") || got.Has("none", "") {
		t.Error("Has does not say what the headers hold")
	}
}

func TestParseFaults(t *testing.T) {
	for name, text := range map[string]string{
		"no claim":      "watch w1 cds a\n----\n",
		"no steps":      "# A claim.\n",
		"empty":         "",
		"no ruler":      "# A claim.\n\nwatch w1 cds a\n* open\n",
		"a second line": "# A claim.\n\nwatch w1 cds a\nwatch w2 cds b\n----\n",
	} {
		if _, err := script.Parse(name, []byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestDiff(t *testing.T) {
	st := parse(t, text).Steps[0]
	tests := []struct {
		name  string
		got   []string
		lanes []script.Lane
		equal bool
	}{
		{"the same", st.Want, []script.Lane{script.Requests, script.Told, script.Inside}, true},
		{"across lanes", []string{st.Want[1], st.Want[0]}, []script.Lane{script.Requests, script.Inside}, true},
		{"something more", append([]string{"w1: synced *"}, st.Want...), []script.Lane{script.Told}, false},
		{"something less", nil, []script.Lane{script.Requests}, false},
		{"not looked at", nil, []script.Lane{script.Told}, true},
	}
	for _, test := range tests {
		if diff := st.Diff(test.got, test.lanes...); (diff == "") != test.equal {
			t.Errorf("%s: %q", test.name, diff)
		}
	}
}

// Update keeps all but what happened, and what it wrote is what it would write.
func TestUpdate(t *testing.T) {
	got := [][]string{{"* open"}, {"w1: synced *"}}
	want := strings.Replace(text, "-> 1 cds sub=[a] node\n", "", 1) + "w1: synced *\n"
	once := script.Update([]byte(text), got)
	if diff := cmp.Diff(want, string(once)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(string(once), string(script.Update(once, got))); diff != "" {
		t.Errorf("again (-want +got):\n%s", diff)
	}
}

func TestResponseDelta(t *testing.T) {
	frame, err := script.Response(strings.Fields("cds - a@7=x b@2~&c -gone !d=5:not_here"), true)
	if err != nil {
		t.Fatal(err)
	}
	var got discoveryv3.DeltaDiscoveryResponse
	if err := proto.Unmarshal(frame, &got); err != nil {
		t.Fatal(err)
	}
	want := &discoveryv3.DeltaDiscoveryResponse{
		TypeUrl: script.TypeURL("cds"),
		Resources: []*discoveryv3.Resource{
			{Name: "a", Version: "7", Resource: &anypb.Any{TypeUrl: script.TypeURL("cds"), Value: []byte("\x0a\x01a\x12\x01x")}},
			{Name: "b", Version: "2", Aliases: []string{"c"}},
		},
		RemovedResources: []string{"gone"},
		ResourceErrors: []*discoveryv3.ResourceError{{
			ResourceName: &discoveryv3.ResourceName{Name: "d"}, ErrorDetail: &status.Status{Code: 5, Message: "not_here"},
		}},
	}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestResponseSotW(t *testing.T) {
	frame, err := script.Response(strings.Fields("cds 3 n1 a=x% bar:b=y w:c/d=z #"), false)
	if err != nil {
		t.Fatal(err)
	}
	var got discoveryv3.DiscoveryResponse
	if err := proto.Unmarshal(frame, &got); err != nil {
		t.Fatal(err)
	}
	wrapped, err := anypb.New(&discoveryv3.Resource{
		Name: "c", Version: "z", Resource: &anypb.Any{TypeUrl: script.TypeURL("cds"), Value: []byte("\x0a\x01d\x12\x01z")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &discoveryv3.DiscoveryResponse{
		TypeUrl: script.TypeURL("cds"), VersionInfo: "3", Nonce: "n1",
		Resources: []*anypb.Any{
			{TypeUrl: script.TypeURL("cds"), Value: []byte("\x12\x01x\x0a\x01a")},
			{TypeUrl: script.TypeURL("bar"), Value: []byte("\x0a\x01b\x12\x01y")},
			wrapped,
			{TypeUrl: script.TypeURL("cds"), Value: []byte{0x0a, 0xff}},
		},
	}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Between angle brackets a name may hold what means something elsewhere.
func TestResponseQuotedNames(t *testing.T) {
	frame, err := script.Response(strings.Fields("cds - <a?b=c&d=e@f>@7=x <g#h>~ !<i=j>=5:no"), true)
	if err != nil {
		t.Fatal(err)
	}
	var got discoveryv3.DeltaDiscoveryResponse
	if err := proto.Unmarshal(frame, &got); err != nil {
		t.Fatal(err)
	}
	want := &discoveryv3.DeltaDiscoveryResponse{
		TypeUrl: script.TypeURL("cds"),
		Resources: []*discoveryv3.Resource{
			{Name: "a?b=c&d=e@f", Version: "7", Resource: &anypb.Any{TypeUrl: script.TypeURL("cds"), Value: []byte("\x0a\x0ba?b=c&d=e@f\x12\x01x")}},
			{Name: "g#h"},
		},
		ResourceErrors: []*discoveryv3.ResourceError{{
			ResourceName: &discoveryv3.ResourceName{Name: "i=j"}, ErrorDetail: &status.Status{Code: 5, Message: "no"},
		}},
	}
	if diff := cmp.Diff(want, &got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestServers(t *testing.T) {
	const steps = "\nend\n----\n"
	tests := []struct {
		headers string
		servers int
		orders  map[string][]int
	}{
		{"", 1, map[string][]int{"": {0}, "a": {0}}},
		{"# server: delta fallback\n", 2, map[string][]int{"": {0, 1}, "a": {0, 1}}},
		{"# server: three\n# authority: a=@@@,@\n", 3, map[string][]int{"": {0, 1, 2}, "a": {2, 0}}},
		{"# server: two\n# authority: a=@@ b=@@,@\n", 2, map[string][]int{"": {0}, "a": {1}, "b": {1, 0}, "c": {0}}},
	}
	for _, test := range tests {
		s := parse(t, "# A claim.\n"+test.headers+steps)
		if got := s.Servers(); got != test.servers {
			t.Errorf("%q: %d servers, want %d", test.headers, got, test.servers)
		}
		for authority, want := range test.orders {
			if diff := cmp.Diff(want, s.Order(authority)); diff != "" {
				t.Errorf("%q: authority %q (-want +got):\n%s", test.headers, authority, diff)
			}
		}
	}
}

func TestRequest(t *testing.T) {
	tests := []struct {
		message proto.Message
		delta   bool
		want    string
	}{
		{&discoveryv3.DiscoveryRequest{
			TypeUrl: script.TypeURL("eds"), ResourceNames: []string{"a", "b"}, VersionInfo: "1", ResponseNonce: "n",
			ErrorDetail: &status.Status{Code: 3, Message: `no "good"`},
		}, false, `-> 2 eds names=[a b] version="1" nonce="n" error=3:"no \"good\""`},
		{&discoveryv3.DeltaDiscoveryRequest{
			TypeUrl: "of.another", ResourceNamesSubscribe: []string{"a"}, ResourceNamesUnsubscribe: []string{"b"},
			InitialResourceVersions: map[string]string{"z": "1", "y": ""},
		}, true, `-> 2 of.another sub=[a] unsub=[b] init={y: z:1}`},
	}
	for _, test := range tests {
		frame, err := proto.Marshal(test.message)
		if err != nil {
			t.Fatal(err)
		}
		if got := script.Request(2, frame, test.delta); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// A script with short names runs as if they were written in full, and is rewritten with the short ones.
func TestNames(t *testing.T) {
	const text = "# A claim.\n# names: a:=xdstp://a/test.Bar/\n\nwatch w bar a:x; watch a bar b\n----\na: synced a:p/*\n-> bar init={a:x:1 aa:y:2} unsub=[a:z]\n"
	s, err := script.Parse("names", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	step := s.Steps[0]
	want := []string{"a: synced xdstp://a/test.Bar/p/*", "-> bar init={xdstp://a/test.Bar/x:1 aa:y:2} unsub=[xdstp://a/test.Bar/z]"}
	if step.Input != "watch w bar xdstp://a/test.Bar/x; watch a bar b" || !slices.Equal(step.Want, want) {
		t.Errorf("read as %q and %q", step.Input, step.Want)
	}
	if got := string(script.Update([]byte(text), [][]string{want})); got != text {
		t.Errorf("rewritten as:\n%s", got)
	}
}
