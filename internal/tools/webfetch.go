package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/agentcli/agent/internal/httpclient"
	"github.com/agentcli/agent/internal/model"
	"github.com/agentcli/agent/internal/policy"
)

// Limits of web_fetch; its description states them.
const (
	webBodyBytes = 10 << 20
	webTime      = 30 * time.Second
	webRedirects = 5
	webChars     = 100_000
	webErrChars  = 2_000 // of a page that came with an error status
)

//go:embed webfetch.md
var webFetchDescription string

const webFetchSchema = `{"type":"object","properties":{
"url":{"type":"string","description":"The address to fetch, with https:// or http://."},
"prompt":{"type":"string","description":"A note of what you look for, repeated above the page."},
"offset":{"type":"integer","minimum":0,"description":"How many characters of the text to skip: where the part before ended."},
"max_length":{"type":"integer","minimum":1,"maximum":100000,"description":"At most so many characters of the text."}},
"required":["url"]}`

type webFetchInput struct {
	URL       string `json:"url" required:"true"`
	Prompt    string `json:"prompt"`
	Offset    int    `json:"offset"`
	MaxLength int    `json:"max_length"`
}

// WebFetchOptions says how web_fetch reaches the network.
type WebFetchOptions struct {
	// HTTP is how the whole program reaches it. DialControl is not used:
	// web_fetch has its own.
	HTTP httpclient.Options
	// AllowedPrivateHosts may be fetched although they are not public: host
	// or host:port.
	AllowedPrivateHosts []string
}

// webFetchTool implements web_fetch.
type webFetchTool struct {
	opts WebFetchOptions
	spec Spec
}

// NewWebFetch returns the tool web_fetch. Each call has connections of its
// own, which are gone when it returns.
func NewWebFetch(o WebFetchOptions) Tool {
	return &webFetchTool{opts: o, spec: Spec{
		Name: "web_fetch", Description: webFetchDescription, Schema: schema(webFetchSchema),
		Class: policy.ClassFetch, ReadOnly: true,
		Targets: []Target{{"url", TargetURL}}, input: reflect.TypeFor[webFetchInput](),
	}}
}

// Spec implements Tool.
func (t *webFetchTool) Spec() Spec { return t.spec }

// WebFetchDisplay is the Display of a web_fetch Result.
type WebFetchDisplay struct {
	URL        string   `json:"url"` // where the redirects ended
	Code       int      `json:"code"`
	CodeText   string   `json:"codeText"`
	Bytes      int      `json:"bytes"` // of the body, decompressed
	DurationMs int64    `json:"durationMs"`
	Redirects  []string `json:"redirects,omitempty"` // the URLs before
}

// page is what came back.
type webPage struct {
	url       *url.URL
	redirects []string
	code      int
	mediaType string
	header    http.Header
	body      []byte
	cut       bool // the body is longer than webBodyBytes
}

// errWebTime ends a fetch that takes too long.
var errWebTime = fmt.Errorf("it took more than %v", webTime)

// Run implements Tool.
func (t *webFetchTool) Run(ctx context.Context, call *Call) Result {
	var in webFetchInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	if in.Offset < 0 || in.MaxLength < 0 {
		return Fail("offset and max_length can't be negative")
	}
	u, err := parseWebURL(in.URL)
	if err != nil {
		return failed(err)
	}
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, webTime, errWebTime)
	defer cancel()
	page, err := t.fetch(ctx, u, call)
	if err != nil {
		return Fail("fetching " + u.Redacted() + ": " + fetchReason(ctx, err))
	}
	result := page.result(ctx, in)
	result.Display = WebFetchDisplay{
		URL: page.url.String(), Code: page.code, CodeText: http.StatusText(page.code), Bytes: len(page.body),
		DurationMs: time.Since(start).Milliseconds(), Redirects: page.redirects,
	}
	return result
}

// fetchReason is what the model needs to know of a failed request.
func fetchReason(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return context.Cause(ctx).Error()
	}
	var refused *refusedError
	if errors.As(err, &refused) {
		return refused.Error()
	}
	var uerr *url.Error
	if errors.As(err, &uerr) {
		err = uerr.Err
	}
	return err.Error()
}

// fetch gets u and reads the body.
func (t *webFetchTool) fetch(ctx context.Context, u *url.URL, call *Call) (*webPage, error) {
	guard, err := newWebGuard(t.opts)
	if err != nil {
		return nil, err
	}
	defer guard.close()
	page := &webPage{}
	client := &http.Client{Transport: guard, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > webRedirects {
			return fmt.Errorf("more than %d redirects, the last one to %s", webRedirects, r.URL.Redacted())
		}
		r.Header.Del("Referer")
		page.redirects = append(page.redirects, via[len(via)-1].URL.String())
		call.Report(Progress{Text: "redirected to " + r.URL.Redacted()})
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if t.opts.HTTP.UserAgent != "" {
		req.Header.Set("User-Agent", t.opts.HTTP.UserAgent)
	}
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, application/json;q=0.9, text/plain;q=0.8, */*;q=0.5")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	page.url, page.code, page.header = resp.Request.URL, resp.StatusCode, resp.Header
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, fmt.Errorf("the server sent the content encoded as %q, which was not asked for", enc)
	}
	if err := page.read(resp.Body, call); err != nil {
		return nil, fmt.Errorf("reading the answer after %d bytes: %w", len(page.body), err)
	}
	return page, nil
}

// read takes the body, decompressed as it comes, up to the limit.
func (p *webPage) read(body io.Reader, call *Call) error {
	buf := make([]byte, 64<<10)
	for len(p.body) <= webBodyBytes {
		n, err := body.Read(buf)
		p.body = append(p.body, buf[:n]...)
		call.Report(Progress{Text: "reading " + p.url.Host, Bytes: int64(len(p.body))})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if len(p.body) > webBodyBytes {
		p.body, p.cut = p.body[:webBodyBytes], true
	}
	p.mediaType = mediaTypeOf(p.header.Get("Content-Type"), p.body)
	return nil
}

// mediaTypeOf is the declared type of a body, or what it looks like when
// nothing useful was declared.
func mediaTypeOf(declared string, body []byte) string {
	mt, _, err := mime.ParseMediaType(declared)
	if err != nil || mt == "application/octet-stream" || mt == "" {
		mt, _, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	return mt
}

// result gives the page in the form that suits its type.
func (p *webPage) result(ctx context.Context, in webFetchInput) Result {
	r := p.show(ctx, in)
	r.IsError = r.IsError || p.code >= 400
	return r
}

func (p *webPage) show(ctx context.Context, in webFetchInput) Result {
	switch {
	case len(p.body) == 0:
		return Text(p.head(in) + "\n(the answer is empty)")
	case isWebImage(p.mediaType):
		return p.image(in)
	case p.mediaType == "text/html" || p.mediaType == "application/xhtml+xml":
		text, err := htmlToMarkdown(ctx, decodeText(p.body, p.header.Get("Content-Type")), p.url)
		if err != nil {
			return Fail("fetching " + p.url.Redacted() + ": " + fetchReason(ctx, err))
		}
		return p.text(text, in)
	case isWebText(p.mediaType):
		return p.text(decodeText(p.body, p.header.Get("Content-Type")), in)
	}
	size := fmt.Sprint(len(p.body))
	if p.cut {
		size = "more than " + size
	}
	return Text(fmt.Sprintf("%s\n(%s, %s bytes: not shown, because it is neither text nor an image. If you need it, download it with a command)", p.head(in), p.mediaType, size))
}

func isWebImage(mt string) bool {
	return mt == "image/png" || mt == "image/jpeg" || mt == "image/gif" || mt == "image/webp"
}

// isWebText reports whether a type is text that a model can read as it is.
func isWebText(mt string) bool {
	if strings.HasPrefix(mt, "text/") || strings.HasSuffix(mt, "+json") || strings.HasSuffix(mt, "+xml") || strings.HasSuffix(mt, "+yaml") {
		return true
	}
	switch mt {
	case "application/json", "application/x-ndjson", "application/jsonl", "application/xml", "application/yaml", "application/x-yaml",
		"application/toml", "application/javascript", "application/ecmascript", "application/x-javascript", "application/sql",
		"application/x-sh", "application/graphql", "application/x-www-form-urlencoded", "application/rtf":
		return true
	}
	return false
}

func (p *webPage) image(in webFetchInput) Result {
	if p.cut || len(p.body) > imageBytes {
		return Fail(fmt.Sprintf("%s\n(%s: larger than %d MB, not shown)", p.head(in), p.mediaType, imageBytes>>20))
	}
	if real := http.DetectContentType(p.body); real != p.mediaType {
		return Fail(fmt.Sprintf("%s\n(declared as %s, but it looks like %s: not shown)", p.head(in), p.mediaType, real))
	}
	return Result{Blocks: []model.Block{model.Text{Text: p.head(in)}, model.Image{MediaType: p.mediaType, Data: p.body}}}
}

// head says what was fetched.
func (p *webPage) head(in webFetchInput) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d %s, %s, %d bytes", p.url, p.code, http.StatusText(p.code), p.mediaType, len(p.body))
	if n := len(p.redirects); n > 0 {
		fmt.Fprintf(&b, "\nRedirected from %s", strings.Join(p.redirects, " and "))
		if first, err := url.Parse(p.redirects[0]); err == nil && first.Hostname() != p.url.Hostname() {
			fmt.Fprintf(&b, ": this is another host, %s", p.url.Hostname())
		}
	}
	if p.cut {
		fmt.Fprintf(&b, "\nThe body is longer than %d MB; only its beginning is here.", webBodyBytes>>20)
	}
	if in.Prompt != "" {
		b.WriteString("\nYou look for: " + in.Prompt)
	}
	return b.String()
}

// text gives the part of a text that was asked for.
func (p *webPage) text(text string, in webFetchInput) Result {
	text = cleanText(text)
	limit := webChars
	if in.MaxLength > 0 && in.MaxLength < limit {
		limit = in.MaxLength
	}
	if p.code >= 400 {
		limit = min(limit, webErrChars)
	}
	total := utf8.RuneCountInString(text)
	if in.Offset >= total && in.Offset > 0 {
		return Fail(fmt.Sprintf("%s\n(offset %d is behind the end: the text has %d characters)", p.head(in), in.Offset, total))
	}
	part := runes(text, in.Offset, limit)
	end := in.Offset + utf8.RuneCountInString(part)
	note := ""
	if in.Offset > 0 || end < total {
		note = fmt.Sprintf("\n\n(characters %d to %d of %d", in.Offset, end, total)
		if end < total {
			note += fmt.Sprintf("; for more, call again with offset %d", end)
		}
		note += ")"
	}
	return Text(p.head(in) + "\n\n" + part + note)
}

// runes returns n runes of s after the first skip.
func runes(s string, skip, n int) string {
	for ; skip > 0 && s != ""; skip-- {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	end := 0
	for ; n > 0 && end < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end]
}

// cleanText drops what can't be in a text: NUL and other controls.
func cleanText(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s))
}

// webGuard sends each request, redirects included, the way that its address
// may be reached, or refuses it.
type webGuard struct {
	proxy   func(*url.URL) (*url.URL, error)
	allowed hostList
	public  *http.Transport // direct; refuses private addresses when it dials
	open    *http.Transport // as the whole program: through the proxy, or to hosts in allowed
}

func newWebGuard(o WebFetchOptions) (*webGuard, error) {
	g := &webGuard{allowed: o.AllowedPrivateHosts}
	o.HTTP.DialControl = nil
	var err error
	if g.proxy, err = o.HTTP.ProxyFunc(); err != nil {
		return nil, err
	}
	if g.open, err = httpclient.New(o.HTTP); err != nil {
		return nil, err
	}
	o.HTTP.Proxy = "direct"
	o.HTTP.DialControl = func(_, address string, _ syscall.RawConn) error { return checkDial(address) }
	if g.public, err = httpclient.New(o.HTTP); err != nil {
		return nil, err
	}
	return g, nil
}

// RoundTrip implements http.RoundTripper.
func (g *webGuard) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if err := checkWebURL(r.URL); err != nil {
		return nil, err
	}
	if g.allowed.contains(r.URL) {
		return g.open.RoundTrip(r)
	}
	if err := checkHost(r.URL.Hostname()); err != nil {
		return nil, err
	}
	proxy, err := g.proxy(r.URL)
	if err != nil {
		return nil, err
	}
	if proxy != nil {
		return g.open.RoundTrip(r)
	}
	return g.public.RoundTrip(r)
}

func (g *webGuard) close() {
	g.open.CloseIdleConnections()
	g.public.CloseIdleConnections()
}
