package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agentcli/agent/internal/model"
)

// ServerOptions configure a [Handler]. The zero value is ready: any key is
// accepted, but there must be one.
type ServerOptions struct {
	// Key is the only API key (or bearer token) that is accepted; "" accepts
	// any.
	Key string
	// NoAuth accepts requests without a key, like local model servers.
	NoAuth bool
	// Lenient leaves out the checks of the requests' contents.
	Lenient bool
	// Models are the names of the models there are; nil takes the script's,
	// and if it has none every name is accepted.
	Models []string
	// FlushEvery is the number of deltas per flush; below 2 each delta is
	// flushed on its own, as real APIs do.
	FlushEvery int
	// OnRequest, if not nil, is called once per request before it is
	// answered, maybe from several goroutines at once.
	OnRequest func(Request)
	// Log, if not nil, gets one JSON line per request when it has ended,
	// without credentials and contents. Writes are serial.
	Log io.Writer
	// Now is the clock of timestamps; nil is time.Now.
	Now func() time.Time
}

// Request is one request to a [Handler].
type Request struct {
	Seq    int // from 1
	Time   time.Time
	Format Format // "" for an unknown path
	Method string
	Path   string
	Query  url.Values  // with the key, if it is there
	Header http.Header // with its credentials
	Body   json.RawMessage
	Parsed *model.Request // nil if it could not be understood
	Stream bool
	Step   int    // number of the step that answers, from 1; 0: refused
	Error  string // why it was refused
}

// Handler serves script over HTTP in the formats of three APIs, chosen by path:
//
//	POST .../models/MODEL:streamGenerateContent?alt=sse   Gemini and Vertex AI
//	POST .../models/MODEL:generateContent
//	POST .../chat/completions                             OpenAI
//	POST .../messages                                     Anthropic
//	GET  .../models                                       the list of models
//
// Requests are checked as the real APIs do and refused in their words; so are
// requests that no step matches. Every Handler plays the script from its start.
func Handler(script *Script, opts ServerOptions) http.Handler {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Models == nil {
		opts.Models = script.models
	}
	return &server{player: newPlayer(script), opts: opts, memory: &memory{}}
}

type server struct {
	player *player
	opts   ServerOptions
	memory *memory

	logMu sync.Mutex // guards seq, and writes to opts.Log
	seq   int
}

// maxBody is the largest request that is read.
const maxBody = 512 << 20

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.logMu.Lock()
	s.seq++
	rec := &Request{Seq: s.seq, Time: s.opts.Now(), Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header}
	s.logMu.Unlock()
	began := time.Now()
	status, end := s.serve(w, r, rec)
	s.log(rec, status, end, time.Since(began))
}

// serve answers, and says with what status and how it ended.
func (s *server) serve(w http.ResponseWriter, r *http.Request, rec *Request) (status int, end string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return 0, "the request's body could not be read: " + err.Error()
	}
	rec.Body = body
	route := routeOf(r)
	rec.Format = route.format
	c, verr := s.accept(r, route, rec)
	var chosen choice
	if verr == nil && c != nil {
		if chosen, err = s.player.choose(c.req); err != nil {
			verr = invalid("%s", err)
		} else {
			rec.Step = chosen.step.number
		}
	}
	if verr != nil {
		rec.Error = verr.message
	}
	if s.opts.OnRequest != nil {
		s.opts.OnRequest(*rec)
	}
	switch {
	case verr != nil:
		return s.refuse(w, route.format, verr), "refused"
	case c == nil:
		return s.listModels(w, route), "listed"
	}
	return s.play(w, r, c, &chosen, rec)
}

// route is what a path means.
type route struct {
	format Format
	list   bool // of models
	stream bool // Gemini
	vertex bool
	model  string
	known  bool
}

func routeOf(r *http.Request) route {
	path := strings.TrimRight(r.URL.Path, "/")
	at := strings.LastIndex(path, "/models/")
	switch {
	case strings.HasSuffix(path, ":streamGenerateContent") && at >= 0:
		return route{format: FormatGemini, known: true, stream: true, vertex: strings.Contains(path, "/publishers/"),
			model: strings.TrimSuffix(path[at+len("/models/"):], ":streamGenerateContent")}
	case strings.HasSuffix(path, ":generateContent") && at >= 0:
		return route{format: FormatGemini, known: true, vertex: strings.Contains(path, "/publishers/"),
			model: strings.TrimSuffix(path[at+len("/models/"):], ":generateContent")}
	case strings.HasSuffix(path, "/chat/completions"):
		return route{format: FormatOpenAI, known: true}
	case strings.HasSuffix(path, "/messages"):
		return route{format: FormatAnthropic, known: true}
	case strings.HasSuffix(path, "/models"):
		return route{format: listFormat(path, r.Header), known: true, list: true}
	}
	return route{format: FormatOpenAI}
}

// listFormat tells whose list of models is wanted.
func listFormat(path string, h http.Header) Format {
	switch {
	case h.Get("Anthropic-Version") != "":
		return FormatAnthropic
	case strings.HasSuffix(path, "/v1beta/models") || h.Get("X-Goog-Api-Key") != "":
		return FormatGemini
	}
	return FormatOpenAI
}

// accept checks and decodes a request; no call means a list is wanted.
func (s *server) accept(r *http.Request, route route, rec *Request) (*call, *vendorError) {
	method := http.MethodPost
	if route.list {
		method = http.MethodGet
	}
	if !route.known || r.Method != method {
		return nil, &vendorError{status: http.StatusNotFound, kind: model.ErrNotFound, code: "unknown_url",
			message: fmt.Sprintf("Unknown request URL: %s %s. The scripted model server serves POST .../models/MODEL:streamGenerateContent, .../chat/completions, .../messages and GET .../models.", r.Method, r.URL.Path)}
	}
	if verr := s.authorise(r, route); verr != nil {
		return nil, verr
	}
	if route.list {
		return nil, nil
	}
	c, verr := s.decode(r, route, rec.Body)
	if c != nil {
		rec.Parsed, rec.Stream = c.req, c.stream
	}
	if verr == nil && !s.hasModel(c.req.Model) {
		verr = &vendorError{status: http.StatusNotFound, kind: model.ErrNotFound, model: c.req.Model}
		verr.message = "model " + c.req.Model + " is not one of " + strings.Join(s.opts.Models, ", ")
	}
	return c, verr
}

func (s *server) hasModel(name string) bool {
	for _, m := range s.opts.Models {
		if m == name {
			return true
		}
	}
	return len(s.opts.Models) == 0
}

func (s *server) decode(r *http.Request, route route, body []byte) (*call, *vendorError) {
	switch route.format {
	case FormatGemini:
		if route.stream && r.URL.Query().Get("alt") != "sse" {
			return nil, invalid("streamGenerateContent is only served as server-sent events here: add ?alt=sse")
		}
		c, verr := decodeGemini(body, route.model, s.opts.Lenient, s.memory)
		if c != nil {
			c.stream = route.stream
		}
		return c, verr
	case FormatAnthropic:
		if r.Header.Get("Anthropic-Version") == "" && !s.opts.Lenient {
			return nil, invalid("anthropic-version: header is required")
		}
		return decodeAnthropic(body, s.opts.Lenient, s.memory)
	}
	return decodeOpenAI(body, s.opts.Lenient)
}

// authorise checks the key in each API's way.
func (s *server) authorise(r *http.Request, route route) *vendorError {
	if s.opts.NoAuth {
		return nil
	}
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	denied := &vendorError{status: http.StatusUnauthorized, kind: model.ErrAuth}
	var key string
	switch route.format {
	case FormatAnthropic:
		var bad *vendorError
		if key, bad = authAnthropic(r.Header); bad != nil {
			return bad
		}
	case FormatGemini:
		if key = r.Header.Get("X-Goog-Api-Key"); key == "" {
			key = r.URL.Query().Get("key")
		}
		if key == "" || route.vertex {
			key = bearer
		}
		switch {
		case route.vertex:
		case key == "":
			denied.status = http.StatusForbidden
			denied.message = "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."
		default:
			denied.status, denied.reason = http.StatusBadRequest, "API_KEY_INVALID"
			denied.message = "API key not valid. Please pass a valid API key."
		}
	default:
		if key = bearer; key == "" {
			denied.message = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
		}
	}
	if key == "" || s.opts.Key != "" && key != s.opts.Key {
		return denied
	}
	return nil
}

func (s *server) refuse(w http.ResponseWriter, f Format, v *vendorError) int {
	h := http.Header{}
	h.Set("Content-Type", "application/json; charset=utf-8")
	if f == FormatAnthropic {
		h.Set(requestIDHeader(f), "req_scripted")
	}
	sendError(w, v.status, h, v.body(f))
	return v.status
}

func (s *server) listModels(w http.ResponseWriter, route route) int {
	names := s.opts.Models
	if len(names) == 0 {
		names = []string{"scripted", "*"} // it answers to any name
	}
	list := make([]any, 0, len(names))
	doc := map[string]any{}
	for _, n := range names {
		switch route.format {
		case FormatGemini:
			list = append(list, map[string]any{"name": "models/" + n, "displayName": n, "inputTokenLimit": 1048576, "outputTokenLimit": 65536,
				"supportedGenerationMethods": []string{"generateContent"}})
		case FormatAnthropic:
			list = append(list, map[string]any{"type": "model", "id": n, "display_name": n, "created_at": "2025-01-01T00:00:00Z"})
		default:
			list = append(list, map[string]any{"id": n, "object": "model", "created": 1735689600, "owned_by": "scripted"})
		}
	}
	switch route.format {
	case FormatGemini:
		doc["models"] = list
	case FormatAnthropic:
		doc["data"], doc["has_more"], doc["first_id"], doc["last_id"] = list, false, names[0], names[len(names)-1]
	default:
		doc["object"], doc["data"] = "list", list
	}
	body, err := marshal(doc)
	if err != nil { // strings and numbers always can be
		return s.refuse(w, route.format, invalid("%s", err))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that is gone needs no answer
	return http.StatusOK
}

// play streams the chosen step.
func (s *server) play(w http.ResponseWriter, r *http.Request, c *call, chosen *choice, rec *Request) (status int, end string) {
	chosen.idPrefix = "call_"
	newline := "\n"
	switch c.format {
	case FormatAnthropic:
		chosen.idPrefix = "toolu_"
	case FormatGemini:
		newline = "\r\n"
	}
	if chosen.step.wire.newline != "" {
		newline = chosen.step.wire.newline
	}
	media := "text/event-stream"
	if c.format != FormatGemini {
		media += "; charset=utf-8"
	}
	if chosen.step.wire.contentType != "" {
		media = chosen.step.wire.contentType
	}
	sink := &httpSink{
		wire: &wireWriter{r: r, w: w, rc: http.NewResponseController(w), opts: chosen.step.wire, newline: newline,
			batch: max(1, s.opts.FlushEvery), media: media},
		call: c, memory: s.memory, now: s.opts.Now(),
		answer: answer{seq: rec.Seq, turn: chosen.values.turn, model: c.req.Model, created: rec.Time, ask: c.usage},
	}
	err := play(r.Context(), chosen, sink)
	switch {
	case r.Context().Err() != nil:
		return http.StatusOK, "client gone"
	case err != nil && !errors.Is(err, errEnded):
		return http.StatusOK, "failed: " + err.Error()
	}
	return sink.status, sink.end
}

// log writes the line of a request.
func (s *server) log(rec *Request, status int, end string, took time.Duration) {
	if s.opts.Log == nil {
		return
	}
	line := map[string]any{
		"seq": rec.Seq, "time": rec.Time.UTC().Format(time.RFC3339Nano), "format": rec.Format, "method": rec.Method, "path": rec.Path,
		"bytes": len(rec.Body), "step": rec.Step, "status": status, "end": end, "ms": float64(took.Microseconds()) / 1e3,
	}
	if rec.Parsed != nil {
		c := look(rec.Parsed)
		line["model"], line["stream"], line["messages"], line["tools"], line["turn"] = rec.Parsed.Model, rec.Stream, len(rec.Parsed.Messages), len(rec.Parsed.Tools), c.turn
	}
	if rec.Error != "" {
		line["error"] = rec.Error
	}
	b, err := marshal(line)
	if err != nil { // strings and numbers always can be
		return
	}
	s.logMu.Lock()
	defer s.logMu.Unlock()
	_, _ = s.opts.Log.Write(append(b, '\n')) // the log is a convenience: serving goes on without
}

// Serve serves h on ln until ctx ends, then ends the running answers, closes
// ln and returns nil. Other errors of serving are returned.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	base, cancel := context.WithCancel(ctx)
	defer cancel()
	srv := &http.Server{Handler: h, BaseContext: func(net.Listener) context.Context { return base }, ReadHeaderTimeout: 30 * time.Second}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }() // ends by Shutdown or Close below
	select {
	case err := <-served:
		return fmt.Errorf("serving the model script: %w", err)
	case <-ctx.Done():
	}
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer stop()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // what did not end in time is cut
	}
	<-served
	return nil
}

// ServeOptions configure [Run].
type ServeOptions struct {
	// Script is the path of the script file.
	Script string
	// Listen is the TCP address to listen on; "" is a free port of 127.0.0.1.
	Listen string
	// Out gets the lines that say where the server is and how to use it.
	Out io.Writer
	// Server is used as it is.
	Server ServerOptions
}

// Run serves a script file until ctx ends, and then returns nil.
func Run(ctx context.Context, opts ServeOptions) error {
	script, err := Load(opts.Script)
	if err != nil {
		return err
	}
	addr := opts.Listen
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listening for the model server (choose another address with --listen): %w", err)
	}
	at := "http://" + ln.Addr().String()
	if opts.Out != nil {
		_, err = fmt.Fprintf(opts.Out, "serving %s (%d steps) at %s\n  GOOGLE_GEMINI_BASE_URL=%s\n  OPENAI_BASE_URL=%s/v1\n  ANTHROPIC_BASE_URL=%s\n",
			opts.Script, script.Steps(), at, at, at, at)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("saying where the model server is: %w", err), ln.Close())
	}
	return Serve(ctx, ln, Handler(script, opts.Server))
}
