package transcript

import (
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxKey is the length from which a project key is cut and hashed.
const maxKey = 200

// ProjectKey names the folder of a working directory's sessions: its real path
// in NFC with everything but letters and digits replaced by '-'; a long one is
// cut and a hash appended (wire/claude-agent-sdk.md §6). cwd must be absolute.
func ProjectKey(cwd string) string {
	if real, err := filepath.EvalSymlinks(cwd); err == nil {
		cwd = real
	}
	cwd = norm.NFC.String(cwd)
	var sb strings.Builder
	for _, r := range cwd {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			sb.WriteRune(r)
		case r > 0xFFFF: // counted as two UTF-16 units by the readers
			sb.WriteString("--")
		default:
			sb.WriteByte('-')
		}
	}
	key := sb.String()
	if len(key) <= maxKey {
		return key
	}
	return key[:maxKey] + "-" + pathHash(cwd)
}

// pathHash is the 32-bit h*31+c hash over UTF-16 units, absolute, in base 36.
func pathHash(s string) string {
	var h int32
	unit := func(c int32) { h = h*31 + c }
	for _, r := range s {
		if r > 0xFFFF {
			r -= 0x10000
			unit(0xD800 + r>>10)
			unit(0xDC00 + r&0x3FF)
			continue
		}
		unit(r)
	}
	n := int64(h)
	if n < 0 {
		n = -n
	}
	return strconv.FormatInt(n, 36)
}

// Path returns the file of a session: dir/projects/KEY/ID.jsonl.
func Path(dir, cwd, sessionID string) string {
	return filepath.Join(dir, "projects", ProjectKey(cwd), sessionID+".jsonl")
}
