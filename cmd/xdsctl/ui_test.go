package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// startUI runs `xdsctl ui` and gives the URL of its page.
func startUI(t *testing.T, args ...string) (p *program, url string) {
	t.Helper()
	p = startCommand(t, strings.NewReplacer(), append([]string{"ui", "-o", "json"}, args...)...)
	var first struct{ Event, Address string }
	if err := json.Unmarshal([]byte(p.line()), &first); err != nil || first.Event != "listening" {
		t.Fatalf("%+v: %v; %s", first, err, p.stderr)
	}
	return p, "http://" + first.Address + "/"
}

func fetched(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return string(text)
}

// ended stops a program and gives its status.
func (p *program) ended() int {
	p.stop()
	return <-p.status
}

// The page shows subscriptions, and the exchange with the server.
func TestUI(t *testing.T) {
	t.Parallel()
	m := managed(t, shop()...)
	p, url := startUI(t, "--server", m.Addr(), "cds", "eds:backend")
	until(t, "the resources", func() bool {
		return strings.Contains(fetched(t, url+"resources?format=json&status=ACKED&q=backend&contents=true"), "10.0.1.1")
	})
	if text := fetched(t, url+"exchanges"); !strings.Contains(text, "ACK") || !strings.Contains(text, "response") {
		t.Error(text)
	}
	if text := fetched(t, url+"config_dump"); !strings.Contains(text, "frontend") {
		t.Error(text)
	}
	if status := p.ended(); status != 0 {
		t.Errorf("status %d: %s", status, p.stderr)
	}
}

// Of a root the page shows the view, and what it waits for.
func TestUIRoot(t *testing.T) {
	t.Parallel()
	m := managed(t, shop()...)
	for _, root := range []string{"lds:ingress", "all"} {
		p, url := startUI(t, "--server", m.Addr(), root)
		until(t, "the view", func() bool {
			text := fetched(t, url+"views?format=json")
			return strings.Contains(text, `"ingress"`) && strings.Contains(text, `"clusters": 2`)
		})
		if status := p.ended(); status != 0 {
			t.Errorf("status %d: %s", status, p.stderr)
		}
	}
}

// What cannot be shown is bad usage; an address that is not free is a failure.
func TestUIRefuses(t *testing.T) {
	t.Parallel()
	m := managed(t)
	p, url := startUI(t, "--server", m.Addr(), "cds")
	taken := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")
	for _, c := range []struct {
		want int
		args []string
	}{
		{1, []string{"--listen", taken, "cds"}},
		{2, []string{"--host", "h", "cds", "lds"}},
		{2, []string{"--host", "h", "all"}},
		{2, nil},
	} {
		if status, _, errs := runOnce(t, append([]string{"ui", "--server", m.Addr()}, c.args...)...); status != c.want {
			t.Errorf("%v: status %d, want %d: %s", c.args, status, c.want, errs)
		}
	}
	p.ended()
	if status, out, errs := runOnce(t, "ui", "--server", m.Addr(), "--for", "1ms", "cds"); status != 0 || !strings.HasPrefix(out, "listening on http://127.0.0.1:") {
		t.Errorf("status %d, %q, %s", status, out, errs)
	}
}
