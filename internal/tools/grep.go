package tools

import (
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agentcli/agent/internal/policy"
)

// Limits of grep_search; its description states them.
const (
	grepLines     = 250
	grepLineChars = 2000
	grepMaxLines  = 10_000    // with head_limit
	grepOutBytes  = 256 << 10 // of the whole result
	grepContext   = 100       // lines around a match
)

//go:embed grep.md
var grepDescription string

const grepSchema = `{"type":"object","properties":{
"pattern":{"type":"string","description":"The regular expression (or, with fixed_strings, the text) to search for."},
"path":{"type":"string","description":"A directory or file to search in. Default: the working directory."},
"glob":{"type":"string","description":"Only files that match this glob, such as *.go or *.{ts,tsx}; !glob excludes."},
"type":{"type":"string","description":"Only files of this type, such as go, py, js, rust."},
"output_mode":{"type":"string","enum":["content","files_with_matches","count"],"description":"What to return. Default: content."},
"-i":{"type":"boolean","description":"Ignore case."},
"-n":{"type":"boolean","description":"Show line numbers. Default: true."},
"-A":{"type":"integer","minimum":0,"description":"Lines to show after each match."},
"-B":{"type":"integer","minimum":0,"description":"Lines to show before each match."},
"-C":{"type":"integer","minimum":0,"description":"Lines to show before and after each match."},
"multiline":{"type":"boolean","description":"Let matches span lines; . matches line ends too."},
"fixed_strings":{"type":"boolean","description":"Search for the pattern as plain text."},
"head_limit":{"type":"integer","minimum":1,"description":"How many lines or files to return at most. Default: 250."},
"offset":{"type":"integer","minimum":0,"description":"How many results to skip. Default: 0."}},
"required":["pattern"]}`

type grepInput struct {
	Pattern    *string  `json:"pattern" alias:"query,regex" required:"true"`
	Path       string   `json:"path" alias:"dir_path,directory"`
	Glob       []string `json:"glob" alias:"include,include_pattern"`
	Exclude    []string `json:"exclude"`
	Type       string   `json:"type"`
	Mode       string   `json:"output_mode"`
	NamesOnly  bool     `json:"names_only"`
	IgnoreCase bool     `json:"-i" alias:"ignore_case,case_insensitive"`
	Numbers    *bool    `json:"-n"`
	After      int      `json:"-A" alias:"after"`
	Before     int      `json:"-B" alias:"before"`
	Context    int      `json:"-C" alias:"context"`
	Multiline  bool     `json:"multiline"`
	Fixed      bool     `json:"fixed_strings" alias:"literal"`
	HeadLimit  int      `json:"head_limit" alias:"limit,total_max_matches,max_results"`
	Offset     int      `json:"offset"`
}

// grepMode is what a search returns.
type grepMode string

const (
	grepContent grepMode = "content"
	grepFiles   grepMode = "files_with_matches"
	grepCount   grepMode = "count"
)

// grepTool implements grep_search.
type grepTool struct {
	cfg  FileConfig
	spec Spec
}

func newGrepTool(c FileConfig) *grepTool {
	return &grepTool{cfg: c, spec: Spec{
		Name: "grep_search", Description: grepDescription, Schema: schema(grepSchema),
		Class: policy.ClassRead, ReadOnly: true,
		Targets: []Target{{"path", TargetSearch}}, input: reflect.TypeFor[grepInput](),
	}}
}

// Spec implements Tool.
func (t *grepTool) Spec() Spec { return t.spec }

// grepQuery is a search made ready.
type grepQuery struct {
	mode          grepMode
	matcher       *lineMatcher
	spanning      *spanMatcher // for multiline
	filter        walkFilter
	limit, offset int
	before, after int
	numbers       bool
	dollar        bool // the pattern has a $
}

// Run implements Tool.
func (t *grepTool) Run(ctx context.Context, call *Call) Result {
	var in grepInput
	if err := t.spec.decode(call.Input, &in); err != nil {
		return failed(err)
	}
	q, err := newGrepQuery(in)
	if err != nil {
		return failed(err)
	}
	if in.Path == "" {
		in.Path = "."
	}
	place, err := t.cfg.Roots.With(call.Granted).Resolve(in.Path)
	if err != nil {
		return failed(err)
	}
	found, err := t.search(ctx, place, q, call)
	if err != nil {
		return failed(pathError("searching", in.Path, err))
	}
	return t.report(place, q, found)
}

func newGrepQuery(in grepInput) (*grepQuery, error) {
	q := &grepQuery{mode: grepMode(in.Mode), numbers: in.Numbers == nil || *in.Numbers, offset: in.Offset, limit: in.HeadLimit}
	switch {
	case q.mode == "" && in.NamesOnly:
		q.mode = grepFiles
	case q.mode == "":
		q.mode = grepContent
	case q.mode != grepContent && q.mode != grepFiles && q.mode != grepCount:
		return nil, fmt.Errorf("output_mode %q is not known: use content, files_with_matches or count", in.Mode)
	}
	if in.After < 0 || in.Before < 0 || in.Context < 0 || in.HeadLimit < 0 || in.Offset < 0 {
		return nil, fmt.Errorf("-A, -B, -C, head_limit and offset must not be negative")
	}
	if q.limit == 0 {
		q.limit = grepLines
	}
	q.limit = min(q.limit, grepMaxLines)
	q.before, q.after = min(max(in.Before, in.Context), grepContext), min(max(in.After, in.Context), grepContext)
	q.dollar = !in.Fixed && strings.Contains(*in.Pattern, "$")
	parsed, re, err := parsePattern(*in.Pattern, in.Fixed, in.IgnoreCase, in.Multiline)
	if err != nil {
		return nil, err
	}
	if q.matcher, err = newLineMatcher(parsed, re); err != nil {
		return nil, patternError(*in.Pattern, err)
	}
	if in.Multiline {
		q.spanning = &spanMatcher{parsed: parsed, re: re}
	}
	return q, q.addFilter(in)
}

// addFilter sets which files are searched.
func (q *grepQuery) addFilter(in grepInput) error {
	for _, list := range in.Glob {
		for _, g := range splitGlobs(list) {
			if err := q.filter.overrides.add(g); err != nil {
				return err
			}
		}
	}
	for _, list := range in.Exclude {
		for _, g := range splitGlobs(list) {
			if err := q.filter.overrides.add("!" + strings.TrimPrefix(g, "!")); err != nil {
				return err
			}
		}
	}
	if in.Type == "" {
		return nil
	}
	var err error
	q.filter.typeGlobs, err = typeGlobs(in.Type)
	return err
}

// splitGlobs separates globs given in one string, by blanks or by commas that
// are not in braces.
func splitGlobs(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return r == ' ' || r == ',' && depth <= 0
	})
}

// grepFound is the outcome of a search.
type grepFound struct {
	files      []fileMatch    // by path; lines are complete for those within limit and offset
	hidden     map[string]int // files that were left out, by the reason
	unreadable int64
	tooLarge   int64
	searched   int64
	crlf       bool // a file with CRLF was searched
}

// matches counts matching lines.
func (f grepFound) matches() int {
	n := 0
	for _, m := range f.files {
		n += m.count
	}
	return n
}

// search searches a directory, or one file.
func (t *grepTool) search(ctx context.Context, at Place, q *grepQuery, call *Call) (grepFound, error) {
	c := &grepCollector{q: q, hidden: t.cfg.Hidden}
	f, info, err := at.open()
	if err != nil {
		return grepFound{}, err
	}
	defer f.Close()
	if !info.IsDir() {
		s := q.searcher()
		m, err := s.search(f, info.Size())
		m.path = filepath.ToSlash(t.cfg.Roots.Relative(at.Named))
		c.add(m, err)
		return c.result(), nil
	}
	searchers := make([]*fileSearcher, t.cfg.Workers)
	for i := range searchers {
		searchers[i] = q.searcher()
	}
	prefix := filepath.ToSlash(t.cfg.Roots.Relative(at.Named))
	stats, err := walk(ctx, at, &q.filter, t.cfg.Workers, func(v visited) {
		if c.isHidden(at, v.rel) {
			return
		}
		m, err := searchVisited(v, searchers[v.worker])
		m.path, m.rel = path.Join(prefix, v.rel), v.rel
		if n := c.add(m, err); n%512 == 0 {
			call.Report(Progress{Text: fmt.Sprintf("searched %d files", n)})
		}
	})
	if err != nil {
		return grepFound{}, err
	}
	found := c.result()
	found.unreadable += stats.unreadable.Load()
	return found, nil
}

func (q *grepQuery) searcher() *fileSearcher {
	s := &fileSearcher{matcher: q.matcher, spanning: q.spanning, first: q.mode == grepFiles}
	if q.mode == grepContent {
		s.keep = q.limit + q.offset
	}
	return s
}

// searchVisited searches a file of a walk. What it finds is of the file of that
// name: a symlink that is put in its place meanwhile leads to nothing.
func searchVisited(v visited, s *fileSearcher) (fileMatch, error) {
	for range 3 { // a file that is being replaced gets another chance
		m, same, err := searchOpened(v, s)
		if err != nil || same {
			return m, err
		}
	}
	return fileMatch{}, errSwapped
}

// searchOpened searches the file once. It reports whether what was found is of
// the file of that name; that is only looked at when there is something.
func searchOpened(v visited, s *fileSearcher) (m fileMatch, same bool, err error) {
	f, err := v.dir.OpenFile(v.name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return fileMatch{}, false, err
	}
	defer f.Close()
	size := int64(0)
	if s.spanning != nil {
		info, err := f.Stat()
		if err != nil {
			return fileMatch{}, false, err
		}
		if !info.Mode().IsRegular() {
			return fileMatch{}, false, fs.ErrInvalid
		}
		size = info.Size()
	}
	if m, err = s.search(f, size); err != nil || m.count == 0 {
		return m, true, err
	}
	info, err := f.Stat()
	return m, err == nil && isEntry(v.dir, v.name, info), err
}

// grepCollector gathers what the workers find, keeping the text only of lines
// that can still be among the first.
type grepCollector struct {
	q        *grepQuery
	hidden   func(abs string) string // may be nil
	searched atomic.Int64

	mu    sync.Mutex
	found grepFound
	kept  int
}

// isHidden asks whether a file of the walk of from is to be left out, by its
// real path and by the one that the walk's caller sees, and counts it if so.
func (c *grepCollector) isHidden(from Place, rel string) bool {
	if c.hidden == nil {
		return false
	}
	rel = filepath.FromSlash(rel)
	why := c.hidden(joinPath(from.Path, rel))
	if why == "" && from.Named != from.Path {
		why = c.hidden(joinPath(from.Named, rel))
	}
	if why == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found.hidden == nil {
		c.found.hidden = map[string]int{}
	}
	c.found.hidden[why]++
	return true
}

// add takes what was found in one file and returns how many files that makes.
func (c *grepCollector) add(m fileMatch, err error) int64 {
	n := c.searched.Add(1)
	if m.count == 0 && err == nil && !m.crlf {
		return n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == errTooLarge: //nolint:errorlint // the very value, from fileSearcher
		c.found.tooLarge++
	case err != nil:
		c.found.unreadable++
	}
	c.found.crlf = c.found.crlf || m.crlf
	if m.count == 0 {
		return n
	}
	c.found.files = append(c.found.files, m)
	if c.kept += len(m.lines); c.kept > 8*(c.q.limit+c.q.offset)+4096 {
		c.prune()
	}
	return n
}

// prune sorts the files and drops the lines that are beyond the limit already.
func (c *grepCollector) prune() {
	c.sort()
	c.kept = 0
	for i := range c.found.files {
		f := &c.found.files[i]
		if c.kept >= c.q.limit+c.q.offset {
			f.lines = nil
		}
		c.kept += len(f.lines)
	}
}

func (c *grepCollector) sort() {
	slices.SortFunc(c.found.files, func(a, b fileMatch) int { return strings.Compare(a.path, b.path) })
}

func (c *grepCollector) result() grepFound {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sort()
	c.found.searched = c.searched.Load()
	return c.found
}
