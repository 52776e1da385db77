package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// lookPath returns the absolute path of name: itself if it is absolute, else the
// first match in the last PATH of env. Relative and empty PATH entries are
// skipped, and a relative path is refused, so that no program is ever taken from
// the working directory, which belongs to whoever wrote the repository.
func lookPath(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return firstExecutable(name, env)
	}
	if name == "" || strings.ContainsRune(name, '/') || filepath.Base(name) != name {
		return "", errors.New("a relative path is not looked up: give an absolute path or a plain name")
	}
	path, _ := lookupEnv(env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := firstExecutable(filepath.Join(dir, name), env); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("not found in PATH (%s): %w", path, fs.ErrNotExist)
}

// firstExecutable returns path, or path with one of the system's suffixes for
// programs, whichever is an executable file first.
func firstExecutable(path string, env []string) (string, error) {
	var firstErr error
	for _, suffix := range append([]string{""}, programSuffixes(env)...) {
		err := executable(path + suffix)
		if err == nil {
			return path + suffix, nil
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	return "", firstErr
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case !mayExecute(info.Mode()):
		return fmt.Errorf("%s is not executable: %w", path, fs.ErrPermission)
	}
	return nil
}

// lookupEnv returns the last value of key in env, as a program would see it.
func lookupEnv(env []string, key string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && sameKey(k, key) {
			return v, true
		}
	}
	return "", false
}
