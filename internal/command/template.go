package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
)

// Bounds of what one command file becomes.
const (
	maxExpansion = 1 << 20 // bytes
	maxInserts   = 50      // shell commands, and files, each
)

// style is how the text of a command file marks what is inserted.
type style int

const (
	// dollars: $ARGUMENTS, $1 to $9, !`command`, @path.
	dollars style = iota
	// braces: {{args}}, !{command}, @{path}.
	braces
)

// partKind says what a part of a template is.
type partKind int

const (
	literal partKind = iota
	allArgs
	oneArg
	shellCommand
	file
)

// part is a piece of a template.
type part struct {
	kind partKind
	text string // as written; of a command or a file what is within its marks
	n    int    // of oneArg
}

// template is the text of a command file in its parts. What is inserted is
// never looked at for marks: neither an argument nor the contents of a file nor
// the output of a command can make anything run.
type template struct {
	style style
	parts []part
}

var (
	dollarMarks = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("\\$ARGUMENTS\\b|\\$[1-9]\\b|!`[^`\n]+`|@[^\\s`'\"()<>\\[\\]{}|;,]+")
	})
	braceMarks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{args\}\}|[!@]\{`) })
)

// parseTemplate finds the marks of a text. The error says which one has no end,
// or that there are too many.
func parseTemplate(text string, s style) (*template, error) {
	t := &template{style: s}
	var err error
	if s == braces {
		err = t.parseBraces(text)
	} else {
		t.parseDollars(text)
	}
	if err != nil {
		return nil, err
	}
	if t.count(shellCommand) > maxInserts || t.count(file) > maxInserts {
		return nil, fmt.Errorf("the command's file inserts more than %d shell commands or files", maxInserts)
	}
	return t, nil
}

func (t *template) add(kind partKind, text string) {
	if text != "" {
		t.parts = append(t.parts, part{kind: kind, text: text})
	}
}

func (t *template) count(kind partKind) int {
	n := 0
	for _, p := range t.parts {
		if p.kind == kind {
			n++
		}
	}
	return n
}

func (t *template) parseDollars(text string) {
	done := 0
	for _, m := range dollarMarks().FindAllStringIndex(text, -1) {
		mark := text[m[0]:m[1]]
		// An address such as a@b.c is no path, and Hello!`x` no command.
		if (mark[0] == '@' || mark[0] == '!') && m[0] > 0 && !strings.ContainsRune(" \t\r\n([", rune(text[m[0]-1])) {
			continue
		}
		end := m[1]
		t.add(literal, text[done:m[0]])
		switch {
		case mark == "$ARGUMENTS":
			t.add(allArgs, mark)
		case mark[0] == '$':
			t.parts = append(t.parts, part{kind: oneArg, text: mark, n: int(mark[1] - '0')})
		case mark[0] == '!':
			t.add(shellCommand, mark[2:len(mark)-1])
		default:
			path := strings.TrimRight(mark[1:], ".:!?")
			end = m[0] + 1 + len(path)
			if path == "" {
				t.add(literal, text[m[0]:end])
				break
			}
			t.add(file, path)
		}
		done = end
	}
	t.add(literal, text[done:])
}

func (t *template) parseBraces(text string) error {
	for {
		m := braceMarks().FindStringIndex(text)
		if m == nil {
			t.add(literal, text)
			return nil
		}
		t.add(literal, text[:m[0]])
		mark := text[m[0]:m[1]]
		text = text[m[1]:]
		if mark == "{{args}}" {
			t.add(allArgs, mark)
			continue
		}
		end := closing(text)
		if end < 0 {
			return fmt.Errorf("a %s in the command's file has no closing brace", mark)
		}
		kind := file
		if mark[0] == '!' {
			kind = shellCommand
		}
		t.add(kind, strings.TrimSpace(text[:end]))
		text = text[end+1:]
	}
}

// closing finds the brace that closes one which was opened before text.
func closing(text string) int {
	depth := 1
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// takesArgs reports whether the template says where the arguments go.
func (t *template) takesArgs() bool {
	for _, p := range t.parts {
		switch {
		case p.kind == allArgs || p.kind == oneArg:
			return true
		case p.kind == shellCommand && t.style == braces && strings.Contains(p.text, "{{args}}"):
			return true
		case p.kind == shellCommand && t.style == dollars && dollarArgs().MatchString(p.text):
			return true
		}
	}
	return false
}

var dollarArgs = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$(?:\{\W?)?(?:ARGUMENTS|[1-9])\b`) })

// expansion is one rendering of a template.
type expansion struct {
	env  Env
	out  strings.Builder
	tail strings.Builder // the contents of files that are named in the text
}

// render makes the prompt. Shell commands are all put together before the first
// one runs.
func (t *template) render(ctx context.Context, env Env, args string) (string, error) {
	words := splitArgs(args)
	commands := make(map[int]string)
	for i, p := range t.parts {
		if p.kind != shellCommand {
			continue
		}
		command, err := insertArgs(p.text, t.style, args, words)
		if err != nil {
			return "", err
		}
		commands[i] = command
	}
	e := expansion{env: env}
	for i, p := range t.parts {
		if err := e.part(ctx, t.style, p, commands[i], args, words); err != nil {
			return "", err
		}
		if e.out.Len()+e.tail.Len() > maxExpansion {
			return "", fmt.Errorf("what the command's file becomes is longer than %d KiB", maxExpansion>>10)
		}
	}
	return e.out.String() + e.tail.String(), nil
}

func (e *expansion) part(ctx context.Context, s style, p part, command, args string, words []string) error {
	switch p.kind {
	case allArgs:
		e.out.WriteString(args)
	case oneArg:
		if p.n <= len(words) {
			e.out.WriteString(words[p.n-1])
		}
	case shellCommand:
		return e.shell(ctx, command)
	case file:
		return e.file(ctx, s, p.text)
	default:
		e.out.WriteString(p.text)
	}
	return nil
}

func (e *expansion) shell(ctx context.Context, command string) error {
	if e.env.Shell == nil {
		return fmt.Errorf("it runs the shell command %q, and none can be run here", command)
	}
	output, err := e.env.Shell.RunShell(ctx, command)
	if err != nil {
		return fmt.Errorf("its shell command %q: %w", command, err)
	}
	e.out.WriteString(strings.TrimRight(output, "\n"))
	return nil
}

// file inserts a file: where it is named, or with dollars at the end, so that
// the sentence that names it stays whole. There, what is no file is a word.
func (e *expansion) file(ctx context.Context, s style, path string) error {
	if s == dollars {
		e.out.WriteString("@" + path)
	}
	if e.env.Files == nil {
		if s == braces {
			return fmt.Errorf("it inserts the file %q, and no file can be read here", path)
		}
		return nil
	}
	text, err := e.env.Files.ReadFile(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s == dollars:
		return nil
	case err != nil:
		return fmt.Errorf("the file %q that it inserts: %w", path, err)
	case s == dollars:
		fmt.Fprintf(&e.tail, "\n\nContents of %s:\n\n%s", path, strings.TrimRight(text, "\n"))
	default:
		e.out.WriteString(text)
	}
	return nil
}

// splitArgs cuts arguments at blanks; what is in quotes is one. A quote that
// isn't closed is a character like any other.
func splitArgs(args string) []string {
	var words []string
	for args = strings.TrimSpace(args); args != ""; args = strings.TrimSpace(args) {
		if q := args[0]; q == '"' || q == '\'' {
			if end := strings.IndexByte(args[1:], q); end >= 0 {
				words = append(words, args[1:end+1])
				args = args[end+2:]
				continue
			}
		}
		end := strings.IndexFunc(args, isSpace)
		if end < 0 {
			end = len(args)
		}
		words = append(words, args[:end])
		args = args[end:]
	}
	return words
}
