package browser

import (
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/xdswatch/xdswatch/bootstrap"
	"github.com/xdswatch/xdswatch/client"
	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/resource/eds"
	"github.com/xdswatch/xdswatch/statuspage"
	"github.com/xdswatch/xdswatch/testutil"
	"github.com/xdswatch/xdswatch/transport"
	"github.com/xdswatch/xdswatch/view"
)

var (
	binary = flag.String("chromium", "/usr/bin/chromium", "the browser")
	shots  = flag.String("screenshots", "", "a directory for pictures of the pages")
)

// patience is for a machine that does other things too: a test that waits for more has failed.
const patience = time.Minute

// many clusters are on the page.
const many = 10_000

// script is a name that a page must show as text.
const script = `<script>document.title="owned"</script>`

// site is a client with its server and its pages.
type site struct {
	srv    *testutil.Server
	stream *testutil.Stream
	url    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{srv: testutil.NewServer()}
	boot, err := bootstrap.Server(s.srv.Target())
	must(t, err)
	boot.Node = &corev3.Node{Id: "edge-1"}
	var rec statuspage.Recorder
	nacked := make(chan client.AnswerInfo, 1)
	c, err := client.New(client.Config{
		Bootstrap: boot, ResourceTimeout: -1, // what waits goes on to wait
		GRPC:  transport.GRPCConfig{DialOptions: s.srv.DialOptions()},
		Trace: rec.Trace(&client.Trace{NACK: func(a client.AnswerInfo) { nacked <- a }}),
	})
	must(t, err)
	_, err = c.WatchAll(context.Background(), cds.Type, "*", func(client.Batch[any]) {})
	must(t, err)
	s.stream, err = s.srv.Accept(t.Context())
	must(t, err)
	all := []proto.Message{cluster(script)}
	for i := range many {
		all = append(all, cluster(fmt.Sprintf("cluster-%05d", i)))
	}
	must(t, s.stream.Send(testutil.SotW(cds.Type.TypeURL(), "1", "n1", all...)))
	must(t, c.Ready(t.Context()))
	all[1] = broken("cluster-00000")
	must(t, s.stream.Send(testutil.SotW(cds.Type.TypeURL(), "2", "n2", all...)))
	<-nacked
	v, err := view.New(context.Background(), c, view.Root{Type: view.RootListener, Name: "ingress", Host: "shop.example"}, view.Config{})
	must(t, err)
	_, err = c.Watch(context.Background(), eds.Type, "checkout-with-a-rather-long-name.production.svc.cluster.local", func(client.Event[any]) {})
	must(t, err)
	web := httptest.NewServer(statuspage.New(c, statuspage.Config{Recorder: &rec, Views: slices.Values([]*view.View{v})}))
	s.url = web.URL + "/"
	t.Cleanup(func() {
		web.Close()
		c.Close()
		<-c.Done()
		s.srv.Close()
	})
	return s
}

func cluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(5 * time.Second)}
}

func broken(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(-1)}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newBrowser starts a browser, which ends with the test.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	opts := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(*binary), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience),
		chromedp.WindowSize(1280, 900),
	}
	for _, name := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars",
	} {
		opts = append(opts, chromedp.Flag(name, true))
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, quit := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		// It is waited for, so that its directory can be removed.
		end, give := context.WithTimeout(ctx, 10*time.Second)
		_ = chromedp.Cancel(end)
		give()
		quit()
		cancel()
	})
	must(t, chromedp.Do(ctx))
	return ctx
}

// step is something that is done in a tab.
type step = chromedp.Action[chromedp.Void]

// tab is a page of the browser, which fails its test when something does not come.
type tab struct {
	*testing.T
	ctx  context.Context
	site *site
}

// open opens a tab, after some steps, at a page.
func open(t *testing.T, browser context.Context, s *site, page string, before ...step) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	must(t, chromedp.Do(ctx)) // without an end: that would be the tab's
	ctx, cancel = context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	b := &tab{t, ctx, s}
	b.do(before...)
	b.visit(page)
	return b
}

func (b *tab) do(steps ...step) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatalf("%v; the page is\n%.2000s", err, b.text())
	}
}

func (b *tab) visit(page string) { b.Helper(); b.do(chromedp.Navigate(b.site.url + page)) }

// text is what a person reads.
func (b *tab) text() string {
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
	return text
}

func eval[T any](b *tab, expr string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expr))
	if err != nil {
		b.Fatalf("%v in %.200s", err, expr)
	}
	return v
}

// until waits for an expression to be true, on this page or on that which comes in its place.
func (b *tab) until(expr string) {
	b.Helper()
	for {
		if is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expr)); err == nil && is {
			return
		}
		select {
		case <-b.ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), time.Second)
			defer cancel()
			b.Fatalf("it did not come that %s; the page is\n%.2000s", expr, (&tab{b.T, ctx, b.site}).text())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// says waits for a text on the page.
func (b *tab) says(text string) {
	b.Helper()
	b.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// follow clicks a link with a text. Who follows waits for what is on the page behind it.
func (b *tab) follow(text string) {
	b.Helper()
	b.until(`document.readyState === "complete"`)
	b.do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//a[contains(., '%s')]`, text))))
}

// fits fails if the page is wider than the window.
func (b *tab) fits() {
	b.Helper()
	wide := eval[string](b, `(() => {
		const most = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= most) return "";
		return most + " " + [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > most + 1).map((e) => e.outerHTML.slice(0, 120)).join("\n");
	})()`)
	if wide != "" {
		b.Errorf("wider than the window:\n%s", wide)
	}
}

// shot keeps a picture, if that is asked for.
func (b *tab) shot(name string) {
	b.Helper()
	if *shots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	must(b, err)
	must(b, os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o644))
}

// scheme is what the person prefers: "light" or "dark".
func scheme(name string) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}

// noScript turns JavaScript of pages off; what the test evaluates runs all the same.
func noScript() step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}
