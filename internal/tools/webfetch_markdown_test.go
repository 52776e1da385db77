package tools

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func toMarkdown(t testing.TB, page string) string {
	t.Helper()
	base, err := url.Parse("https://site.example/dir/page")
	if err != nil {
		t.Fatal(err)
	}
	text, err := htmlToMarkdown(context.Background(), page, base)
	if err != nil {
		t.Fatal(err)
	}
	return cleanText(text)
}

func TestHTMLBecomesMarkdown(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, page, want string }{
		{"paragraphs", "<p>One\n two.</p><p>Three &amp; four&nbsp;five</p>", "One two.\n\nThree & four five"},
		{"headings", "<h1>A</h1>text<h3> B <b>c</b></h3><h2></h2><p>x", "# A\n\ntext\n\n### B **c**\n\nx"},
		{"emphasis", "a <b> bold </b> and<i>it</i> <b></b>x <strong><b>y</b></strong>", "a **bold** and_it_ x **y**"},
		{"emphasis stays in its block", "<b>a<p>b</p></b>c", "**a**\n\nb\n\nc"},
		{"links", `<a href="/x?a=1&b=2">here</a>, <a href="sub/(y)">there</a>, <a href="#top">up</a>, <a href="javascript:alert(1)">js</a>, <a href="/e"></a>end`,
			"[here](https://site.example/x?a=1&b=2), [there](https://site.example/dir/sub/%28y%29), up, js, end"},
		{"block in a link", `<a href="/x"><div><h3>Title</h3><p>text</p></div></a>after`, "[Title text](https://site.example/x) after"},
		{"lists", "<p>Intro</p><ul><li>a<li>b <ul><li>b1</li></ul></li></ul><ol><li>x</li><li>y</li></ol>", "Intro\n\n- a\n- b\n  - b1\n\n1. x\n2. y"},
		{"quote", "<blockquote><p>a</p><p>b</p></blockquote>c", "> a\n>\n> b\n\nc"},
		{"code", "Use <code>go test</code>:<pre><code class=\"language-go\">func main() {\n\tx &lt; y\n}\n</code></pre>done", "Use `go test`:\n\n```go\nfunc main() {\n\tx < y\n}\n```\n\ndone"},
		{"code with fences", "<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"},
		{"table", "<table><thead><tr><th>A<th>B</tr></thead><tr><td>1<td><p>2</p><p>3</p></td></tr></table>after", "| A | B |\n| --- | --- |\n| 1 | 2 3 |\n\nafter"},
		{"image", `<img src="/i.png" alt="a  cat"><img src="x.png"><img src="data:image/png;base64,AAA" alt="no">`, "![a cat](https://site.example/i.png)"},
		{"left out", "<head><title> The  title </title><style>p{}</style><meta></head><body><script>var x='</p>';</script><svg><text>v</text></svg><template>t</template>text<!-- c --></body>", "Title: The title\n\ntext"},
		{"title in the text is not repeated", "<title>Same</title><h1>Same</h1>", "# Same"},
		{"line break and rule", "a<br>b<hr>c", "a\nb\n\n---\n\nc"},
		{"definition list", "<dl><dt>T</dt><dd>D</dd></dl>", "T\nD"},
		{"unclosed", "<div><ul><li><a href='/x'>l<b>b", "- [l**b**](https://site.example/x)"},
		{"plain text", "just text", "just text"},
		{"empty", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, toMarkdown(t, c.page)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHostileHTMLTakesLinearTime(t *testing.T) {
	t.Parallel()
	const n = 20_000
	pages := map[string]string{
		"quotes":     strings.Repeat("<blockquote>", 400) + strings.Repeat("<p>x</p>", n),
		"lists":      strings.Repeat("<ul><li>a", n),
		"items":      "<ul>" + strings.Repeat("<li>x", n),
		"links":      strings.Repeat("<a href=x>", n),
		"emphasis":   strings.Repeat("<b>", n) + strings.Repeat("<p>x", n),
		"tables":     strings.Repeat("<table><tr><td>", n),
		"wide table": "<table><tr>" + strings.Repeat("<td>a", n) + strings.Repeat("<tr><td>a", n),
		"divs":       strings.Repeat("<div>", n),
		"blanks":     strings.Repeat(" ", 10*n) + "x",
		"code":       strings.Repeat("<pre>```", n),
		"open tags":  strings.Repeat("<a ", n),
		"entities":   strings.Repeat("&amp", n),
	}
	for name, page := range pages {
		start := time.Now()
		out := toMarkdown(t, page)
		if took := time.Since(start); took > 10*time.Second || len(out) > 20*len(page) {
			t.Errorf("%s: %d bytes took %v and gave %d", name, len(page), took, len(out))
		}
	}
}

func TestConversionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	cancel(stop)
	if _, err := htmlToMarkdown(ctx, "<p>x", &url.URL{}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
}

func FuzzHTMLToMarkdown(f *testing.F) {
	for _, s := range []string{"<p>a<b>b", "<table><tr><td><pre>x</table>", "<ul><li><a href=/>x</a><ol><li>", "<head><title>x", "</b></ul></table></a></pre>", "<a href=x><table><td></a>", "<h1><li><blockquote>x", "\x00<p\xff>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if out := toMarkdown(t, page); !utf8.ValidString(out) {
			t.Errorf("%q gave invalid UTF-8", page)
		}
	})
}

func BenchmarkHTMLToMarkdown(b *testing.B) {
	page := strings.Repeat("<p>Hello <b>world</b> and <a href=/x>link</a></p>\n", 20_000)
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		toMarkdown(b, page)
	}
}
