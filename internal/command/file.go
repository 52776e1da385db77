package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/agentcli/agent/internal/frontmatter"
)

// Bounds of a folder of commands.
const (
	maxFile    = 256 << 10 // bytes of one file
	maxFiles   = 500       // commands of one folder
	maxEntries = 4000      // directory entries of one folder
	maxDepth   = 6         // folders in folders
)

// Folder is a folder of command files. NAME.md and NAME.toml in it are /NAME,
// DIR/NAME.md is /DIR:NAME.
type Folder struct {
	// Root is a directory that nothing of the folder may lie outside of.
	Root string
	// Path is the folder, relative to Root.
	Path   string
	Source Source // User or Project
	// Braces says that the markdown files mark what is inserted with {{args}},
	// !{command} and @{path}, as the TOML files do.
	Braces bool
}

// Folders returns the folders of the dialects beneath root, the one whose
// commands win first.
func Folders(root string, source Source) []Folder {
	folder := func(name string, braces bool) Folder {
		return Folder{Root: root, Path: filepath.Join(name, "commands"), Source: source, Braces: braces}
	}
	return []Folder{folder(".agent", false), folder(".claude", false), folder(".qwen", true), folder(".gemini", true)}
}

// Problem is a file that makes no command, and why.
type Problem struct{ File, Text string }

func (p Problem) String() string { return p.File + ": " + p.Text }

// Load puts the commands of the folders in the place of those that came from
// files before. A folder that doesn't exist is empty. What is wrong with a file
// is returned; the others are loaded.
func (r *Registry) Load(folders []Folder) []Problem {
	var found []Command
	var problems []Problem
	for _, f := range folders {
		if f.Source == Project && slices.ContainsFunc(folders, f.isUsers) {
			continue // the project is the home directory
		}
		s := scan{r: r, folder: f}
		s.run()
		found = append(found, s.commands...)
		problems = append(problems, s.problems...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commands = slices.DeleteFunc(r.commands, func(c Command) bool { return c.Source == User || c.Source == Project })
	r.commands = append(r.commands, found...)
	r.index()
	return problems
}

// isUsers reports whether g is the same folder as one of the user's own.
func (f Folder) isUsers(g Folder) bool {
	return g.Source == User && filepath.Join(f.Root, f.Path) == filepath.Join(g.Root, g.Path)
}

// open opens the folder, which no symlink may lead out of its root.
func (f Folder) open() (*os.Root, error) {
	top, err := os.OpenRoot(f.Root)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	return top.OpenRoot(f.Path)
}

// scan is one reading of a folder.
type scan struct {
	r        *Registry
	folder   Folder
	root     *os.Root
	commands []Command
	problems []Problem
	entries  int
	full     bool
}

func (s *scan) run() {
	root, err := s.folder.open()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.problem(".", "the folder cannot be read: "+reason(err))
		return
	}
	defer root.Close()
	s.root = root
	s.dir(".", 1)
}

func (s *scan) problem(rel, text string) {
	s.problems = append(s.problems, Problem{File: filepath.Join(s.folder.Root, s.folder.Path, rel), Text: text})
}

// reason is an error without the path, which the reader knows.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return err.Error()
}

func (s *scan) dir(rel string, depth int) {
	f, err := s.root.Open(rel)
	if err != nil {
		s.problem(rel, "the folder cannot be read: "+reason(err))
		return
	}
	entries, err := f.ReadDir(maxEntries - s.entries + 1)
	f.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		s.problem(rel, "the folder cannot be read to its end: "+reason(err))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if s.entries++; s.entries > maxEntries || len(s.commands) >= maxFiles {
			s.tooMany()
			return
		}
		s.entry(path.Join(rel, e.Name()), e, depth)
		if s.full {
			return
		}
	}
}

func (s *scan) tooMany() {
	if !s.full {
		s.full = true
		s.problem(".", fmt.Sprintf("the folder holds more than %d commands or %d entries: the rest is left out", maxFiles, maxEntries))
	}
}

func (s *scan) entry(rel string, e fs.DirEntry, depth int) {
	if strings.HasPrefix(e.Name(), ".") {
		return
	}
	if e.IsDir() {
		if depth < maxDepth {
			s.dir(rel, depth+1)
		} else {
			s.problem(rel, fmt.Sprintf("folders nest deeper than %d", maxDepth))
		}
		return
	}
	ext := path.Ext(rel)
	if ext != ".md" && ext != ".toml" {
		return
	}
	name := strings.ReplaceAll(strings.TrimSuffix(rel, ext), "/", ":")
	if !validName(name) {
		s.problem(rel, fmt.Sprintf("%q is no name of a command: use letters, digits, _, - and .", name))
		return
	}
	if c, err := s.r.fileCommand(s.folder, s.root, rel, name); err != nil {
		s.problem(rel, err.Error())
	} else {
		s.commands = append(s.commands, c)
	}
}

// definition is what a command file holds.
type definition struct {
	Description  frontmatter.Text `yaml:"description"`
	ArgumentHint frontmatter.Text `yaml:"argument-hint"`
	AllowedTools frontmatter.List `yaml:"allowed-tools"`
	Model        string           `yaml:"model"`

	style style
	body  string
}

func (r *Registry) fileCommand(folder Folder, root *os.Root, rel, name string) (Command, error) {
	d, err := readDefinition(folder, root, rel)
	if err != nil {
		return Command{}, err
	}
	description := oneLine(string(d.Description))
	if description == "" {
		description = firstLine(d.body)
	}
	return Command{
		Name: name, Source: folder.Source, File: filepath.Join(folder.Root, folder.Path, rel),
		Description: shorten(description), ArgumentHint: shorten(oneLine(string(d.ArgumentHint))),
		Run: func(ctx context.Context, args string) (Expansion, error) {
			return r.runFile(ctx, folder, rel, name, args)
		},
	}, nil
}

// runFile reads the file again, as it may have changed, and makes the prompt.
func (r *Registry) runFile(ctx context.Context, folder Folder, rel, name, args string) (Expansion, error) {
	root, err := folder.open()
	if err != nil {
		return Expansion{}, fmt.Errorf("its file cannot be read any more: %s", reason(err))
	}
	defer root.Close()
	d, err := readDefinition(folder, root, rel)
	if err != nil {
		return Expansion{}, fmt.Errorf("its file %s: %w", filepath.Join(folder.Root, folder.Path, rel), err)
	}
	t, err := parseTemplate(d.body, d.style)
	if err != nil {
		return Expansion{}, err
	}
	prompt, err := t.render(ctx, r.env, args)
	if err != nil {
		return Expansion{}, err
	}
	if args != "" && !t.takesArgs() {
		prompt += "\n\n" + appended(d.style, name, args)
	}
	if strings.TrimSpace(prompt) == "" {
		return Expansion{}, errors.New("its file has no text for the model")
	}
	e := Expansion{Prompt: prompt, AllowedTools: d.AllowedTools}
	if d.Model != "inherit" {
		e.Model = d.Model
	}
	return e, nil
}

// appended is how arguments reach a prompt that has no place for them.
func appended(s style, name, args string) string {
	if s == braces {
		return "/" + name + " " + args
	}
	return "ARGUMENTS: " + args
}

func readDefinition(folder Folder, root *os.Root, rel string) (definition, error) {
	data, err := readBounded(root, rel)
	if err != nil {
		return definition{}, err
	}
	if !utf8.Valid(data) {
		return definition{}, errors.New("the file is not UTF-8 text")
	}
	if path.Ext(rel) == ".toml" {
		return parseTOML(data)
	}
	d := definition{style: dollars}
	if folder.Braces {
		d.style = braces
	}
	d.body, err = frontmatter.Parse(data, &d)
	d.body = strings.TrimSpace(d.body)
	return d, err
}

func parseTOML(data []byte) (definition, error) {
	var file struct {
		Description string `toml:"description"`
		Prompt      string `toml:"prompt"`
	}
	if err := toml.Unmarshal(data, &file); err != nil {
		var de *toml.DecodeError
		if errors.As(err, &de) {
			line, _ := de.Position()
			return definition{}, fmt.Errorf("line %d: %w", line, err)
		}
		return definition{}, err
	}
	if strings.TrimSpace(file.Prompt) == "" {
		return definition{}, errors.New("the key prompt is missing or empty")
	}
	return definition{Description: frontmatter.Text(file.Description), style: braces, body: strings.TrimSpace(file.Prompt)}, nil
}

// readBounded reads a regular file. A symlink that leads out of the folder is
// refused by root.
func readBounded(root *os.Root, rel string) ([]byte, error) {
	info, err := root.Stat(rel)
	if err != nil {
		return nil, errors.New("the file cannot be read: " + reason(err))
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := root.Open(rel)
	if err != nil {
		return nil, errors.New("the file cannot be read: " + reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, errors.New("the file cannot be read: " + reason(err))
	case len(data) > maxFile:
		return nil, fmt.Errorf("the file is longer than %d KiB", maxFile>>10)
	}
	return data, nil
}

// firstLine is what describes a command whose file doesn't.
func firstLine(body string) string {
	for line := range strings.Lines(body) {
		if line = oneLine(strings.TrimLeft(line, "# ")); line != "" {
			return line
		}
	}
	return ""
}

const maxDescription = 200 // runes

func shorten(s string) string {
	r := []rune(s)
	if len(r) <= maxDescription {
		return s
	}
	return string(r[:maxDescription-1]) + "…"
}
