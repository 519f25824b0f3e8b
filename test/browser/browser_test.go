package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/xdswatch/xdswatch/resource/cds"
	"github.com/xdswatch/xdswatch/testutil"
)

// The pages, in one browser: what a person would click.
func TestPages(t *testing.T) {
	s, browser := newSite(t), newBrowser(t)
	t.Run("click", func(t *testing.T) { click(open(t, browser, s, "")) })
	t.Run("without JavaScript", func(t *testing.T) { withoutScript(open(t, browser, s, "", noScript())) })
	t.Run("phone", func(t *testing.T) { phone(open(t, browser, s, "", chromedp.EmulateViewport(360, 740))) })
	t.Run("schemes", func(t *testing.T) { schemes(open(t, browser, s, "", scheme("light"))) })
	t.Run("keyboard", func(t *testing.T) { keyboard(open(t, browser, s, "resources")) })
	t.Run("live", func(t *testing.T) { live(open(t, browser, s, "")) })
}

// click goes from the overview to the text of a resource, searches, and looks at all pages.
func click(b *tab) {
	b.says("edge-1")
	b.says("connected")
	b.shot("overview")
	b.follow("Cluster")
	b.says("1–100 of 10\u202f002")
	b.follow("Next page")
	b.says("101–200 of 10\u202f002")
	b.shot("resources")
	b.do(chromedp.SendKeys(chromedp.CSS(`input[name=q]`), "cluster-09999"+kb.Enter))
	b.says("1–1 of 1")
	b.follow("cluster-09999")
	b.says(`"connectTimeout": "5s"`)
	b.says("ACKED")
	b.shot("resource")
	b.visit("resources?status=problem")
	b.says("NACKED")
	b.follow("cluster-00000")
	b.says("Refused version")
	b.shot("refused")
	b.visit("resources?q=script")
	b.says(script)
	b.follow("owned")
	b.says("Contents")
	b.says(script)
	b.follow("Watches")
	b.says("waits for an answer")
	b.shot("watches")
	b.follow("Views")
	b.says("waits for its first snapshot")
	b.shot("views")
	b.follow("Exchanges")
	b.says("NACK")
	b.shot("exchanges")
	if title := eval[string](b, "document.title"); title != "Exchanges · xDS status" {
		b.Errorf("the title is %q", title)
	}
}

// withoutScript reads, searches and turns pages without JavaScript.
func withoutScript(b *tab) {
	if !eval[bool](b, `document.getElementById("pause").hidden`) {
		b.Error("there is a button that cannot do anything")
	}
	b.follow("Resources")
	b.says("of 10\u202f004")
	b.do(chromedp.SetValue(chromedp.CSS(`select[name=status]`), "NACKED"), chromedp.Click(chromedp.CSS(`form button`)))
	b.says("1–1 of 1")
	b.follow("cluster-00000")
	b.says("Refused version")
}

// phone looks at each page in the width of a phone: nothing sticks out.
func phone(b *tab) {
	for _, page := range []string{"", "resources", "resources?status=problem", "resource?type=Cluster&name=cluster-00000", "resource?type=Cluster&name=cluster-00001", "watches", "views", "exchanges"} {
		b.visit(page)
		b.fits()
		switch page {
		case "":
			b.shot("phone-overview")
		case "resources":
			b.shot("phone-resources")
		case "exchanges":
			b.shot("phone-exchanges")
		}
	}
}

// contrast is the smallest contrast between a text and its background on the page, by WCAG 2.
const contrast = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
	const rgb = (c) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
	const light = (c) => { const [r, g, b] = [...c].slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const paper = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] === 255) return light(c); } return 1; };
	let least = 21;
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
		const a = light(rgb(getComputedStyle(e).color)), b = paper(e);
		least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
	}
	return least;
})()`

// schemes looks at both colour schemes: they differ, and every text can be read.
func schemes(b *tab) {
	papers := map[string]bool{}
	for _, name := range []string{"light", "dark"} {
		for _, page := range []string{"", "resources?status=problem", "exchanges", "views"} {
			b.do(scheme(name))
			b.visit(page)
			papers[eval[string](b, `getComputedStyle(document.body).backgroundColor`)] = true
			if least := eval[float64](b, contrast); least < 4.5 {
				b.Errorf("%s, %s: a contrast of %.2f; WCAG AA wants 4.5", name, page, least)
			}
			if page == "" || page == "exchanges" {
				b.shot(name + "-" + page)
			}
		}
	}
	if len(papers) != 2 {
		b.Errorf("the schemes have the papers %v", papers)
	}
}

// keyboard finds what has the focus, and skips to the content.
func keyboard(b *tab) {
	b.do(chromedp.KeyEvent(kb.Tab))
	if outline := eval[string](b, `document.activeElement.className + " " + getComputedStyle(document.activeElement).outlineStyle`); outline != "skip solid" {
		b.Errorf("the first focus is %q", outline)
	}
	eval[chromedp.Void](b, `window.scrollTo(0, document.body.scrollHeight)`)
	b.until(`scrollY > 0 && document.querySelector("header").getBoundingClientRect().top === 0`)
}

// live sees a change without a click, keeps the focus, and can be halted.
func live(b *tab) {
	b.until(`!document.getElementById("pause").hidden`)
	eval[chromedp.Void](b, `document.querySelector("#types a").focus(); window.same = true;`)
	must(b, b.site.stream.Send(testutil.SotW(cds.Type.TypeURL(), "3", "n3", cluster("a"), cluster("b"))))
	b.until(`document.querySelector("#types").innerText.includes("3 ACKED")`)
	if !eval[bool](b, `window.same && document.activeElement.closest("#types") !== null`) {
		b.Error("the page was loaded anew, or has lost its focus")
	}
	b.do(chromedp.Click(chromedp.CSS("#pause")))
	b.until(`document.getElementById("pause").textContent === "Go on"`)
}
