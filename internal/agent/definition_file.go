package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentcli/agent/internal/frontmatter"
)

const (
	maxAgentFiles = 200     // of one folder
	maxAgentFile  = 1 << 20 // bytes
)

// Folder is where files of agents lie.
type Folder struct {
	Path  string
	Level Level
}

// LoadDefinitions reads the agents of folders: files that end in .md, with
// settings at their head and the system prompt as their text. A folder that is
// not there has none. read reads a regular file of at most so many bytes. What
// can't be read is left out, and told in problems. A project's files may come
// from strangers: in its folders no link is followed.
func LoadDefinitions(folders []Folder, read func(path string, most int64) ([]byte, error)) (list []Definition, problems []error) {
	for _, folder := range folders {
		names, err := agentFiles(folder)
		if err != nil {
			problems = append(problems, err)
		}
		for _, name := range names {
			path := filepath.Join(folder.Path, name)
			d, err := loadDefinition(path, read)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s is left out: %w", path, err))
				continue
			}
			d.Level = folder.Level
			list = append(list, d)
		}
	}
	return list, problems
}

// agentFiles lists the files of a folder by name. The error says what was left
// out.
func agentFiles(folder Folder) ([]string, error) {
	trusted := folder.Level != LevelProject
	if !trusted && (isLink(folder.Path) || isLink(filepath.Dir(folder.Path))) {
		return nil, fmt.Errorf("%s is left out: it is a link", folder.Path)
	}
	dir, err := os.Open(folder.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer dir.Close()
	if info, err := dir.Stat(); err != nil || !info.IsDir() {
		return nil, err // a file of that name is none of ours
	}
	entries, err := dir.ReadDir(10 * maxAgentFiles)
	if err != nil && len(entries) == 0 {
		return nil, nil // empty
	}
	var names []string
	for _, e := range entries {
		if strings.EqualFold(filepath.Ext(e.Name()), ".md") && (e.Type().IsRegular() || trusted && e.Type() == fs.ModeSymlink) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	if len(names) > maxAgentFiles {
		return names[:maxAgentFiles], fmt.Errorf("%s has more than %d agents: the others are left out", folder.Path, maxAgentFiles)
	}
	return names, nil
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

func loadDefinition(path string, read func(string, int64) ([]byte, error)) (Definition, error) {
	data, err := read(path, maxAgentFile)
	if err != nil {
		return Definition{}, err
	}
	return ParseFile(path, data)
}

// ParseFile reads the file of one agent. Without a name it has the file's.
func ParseFile(path string, data []byte) (Definition, error) {
	var meta map[string]any
	body, err := frontmatter.Parse(data, &meta)
	if err != nil {
		return Definition{}, err
	}
	if meta == nil {
		return Definition{}, errors.New("it has no settings at its head: put at least a description there, between lines of ---")
	}
	object, err := json.Marshal(meta)
	if err != nil {
		return Definition{}, fmt.Errorf("its settings can't be read: %w", err)
	}
	f, err := newFields(path, object)
	if err != nil {
		return Definition{}, err
	}
	name := f.text("name")
	if name == "" && f.err == nil {
		base := filepath.Base(path)
		name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	d, err := f.definition(name)
	if err != nil {
		return Definition{}, err
	}
	d.Prompt, d.FilePath = strings.TrimSpace(body), path
	return d, nil
}
